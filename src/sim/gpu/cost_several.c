/* Operations that XLA for GPUs writes as several kernels: what those move beside the operands and the result, and
 * what they hold meanwhile. A framework has one kernel for each. */
#include "sim/gpu/cost.h"
#include "sim/gpu/gpu.h"

#define WORD 4.0
/* What leads the counter of a generator on, in numbers of kernels: all are short. */
#define COUNTER 6

static double elements(const HNode *n, int result) {
  double all = 1;
  int rank = n->n_results > 1 ? n->res_rank[result] : n->rank;
  for (int d = 0; d < rank; d++) all *= (double)(n->n_results > 1 ? n->res_d[result] : n->d)[d];
  return all;
}

/* A generator makes words of 32 bits, in four arrays, and puts them together in the type that is asked for. */
static double random_words(const HNode *n) {
  int last = n->n_results - 1;
  double bits = hlo_bits(n->n_results > 1 ? n->res_dt[last] : n->dt);
  return elements(n, last) * MAX(bits / 8, WORD);
}

/* XLA's own kernel keeps up to 16 of rows of 1024 and more; for others it sorts whole rows. */
bool gpu_sorted(const HNode *n) {
  if (n->op != OP_CHLO_TOP_K || !n->src || !n->in[0]->rank) return false;
  return op_int(n->src, "k", 1) > 16 || n->in[0]->d[n->in[0]->rank - 1] < 1024;
}

/* Sorting keeps the order of equal ones by their places. Long rows are sorted by digits, from one array into another. */
static double sorted_bytes(const HNode *n) {
  double all = (double)hlo_count(n->in[0]), size = hlo_bits(n->in[0]->dt) / 8;
  if (n->kind == H_SORT)
    return n->n_in == 1 && n->src && op_bool(n->src, "is_stable", false) ? WORD * all : 0;
  if (!gpu_sorted(n)) return 0;
  bool digits = n->in[0]->d[n->in[0]->rank - 1] > 1024;
  return all * (digits ? 2 * (size + WORD) + WORD : size + WORD);
}

double gpu_made_bytes(const HNode *n) {
  if (n->kind == H_RNG) return random_words(n);
  if (n->kind == H_SORT || n->op == OP_CHLO_TOP_K) return sorted_bytes(n);
  if (n->kind != H_SELSCAT) return 0;
  /* places of each window's choice, one word a dimension; sums in 32 bits */
  double wide = hlo_bits(n->dt) < 32 ? WORD * (double)hlo_count(n) : 0;
  return WORD * n->rank * (double)hlo_count(n->in[1]) + wide;
}

double gpu_made_s(const Schedule *p, const HNode *n, double bandwidth) {
  double launch = gpu_rate(p->chip, "fit.launch");
  if (n->kind == H_RNG) return 2 * random_words(n) / bandwidth + COUNTER * launch;
  if (n->kind == H_SORT && n->in[0]->kind == H_PARAM)
    return 2 * hlo_bytes(n->in[0]) / bandwidth + launch; /* sorted in a copy */
  if (n->kind != H_SELSCAT || n->n_in < 2) return 0;
  double all = (double)hlo_count(n), windows = (double)hlo_count(n->in[1]),
         size = hlo_bits(n->dt) / 8;
  double zeros = WORD * all,
         found = WORD * windows * (1 + n->rank); /* the largest, and where it is */
  double added = WORD * windows * n->rank + size * windows + WORD * all;
  double s = (zeros + found + gpu_rate(p->chip, "fit.scattered") * added) / bandwidth + 2 * launch;
  return size < WORD ? s + WORD * all / bandwidth + launch : s - 2 * size * all / bandwidth;
}
