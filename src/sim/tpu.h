/* tpu: the parts of the cost model of TPUs. Private to src/sim/tpu_*.c. */
#ifndef WEFT_SIM_TPU_H
#define WEFT_SIM_TPU_H

#include "sim/plan.h"

/* tpu_parts.c */
int tpu_width(const HValue *v);
double tpu_wide(const HValue *v);
double tpu_base_bytes(const HValue *v);
double tpu_read_cost(const Law *law, const Rates *at, HValue *v);
double tpu_pack_cost(const Rates *at, const HValue *v);
double tpu_write_cost(const Law *law, const Rates *at, const HValue *v);
double tpu_vector_work(const Law *law, const Kernel *k);
double tpu_turned_rows(const Kernel *k);
double tpu_spread_rows(const Kernel *k);
double tpu_read_fraction(const Kernel *k, const HValue *v);
double tpu_windows(const Law *law, const Kernel *k);
bool tpu_written_into(const Kernel *k, const HValue *v);
double tpu_written_part(const HNode *r);
double tpu_packed_twice(const Law *law, const Rates *at, const Kernel *k);
/* tpu_product.c */
void tpu_product(Plan *p, Kernel *k);
void tpu_matvec(Plan *p, Kernel *k);
/* tpu_loop.c */
void tpu_loop(Plan *p, Kernel *k);
void tpu_update(Plan *p, Kernel *k);

#endif
