/* The report as JSON. Kernels carry totals over all their runs, so that columns add up. Their cycles are
 * what the chip's own compiler would estimate: 0 for a kernel marked as modelled, which it has no
 * estimate for (its time counts all the same). */
#include <math.h>

#include "base/units.h"
#include "sim/sim.h"

#define MOST_BUFFERS 200

static void text(Buf *o, const char *key, const char *value, const char *after) {
  buf_printf(o, "\"%s\": ", key);
  buf_json_str(o, value);
  buf_cstr(o, after);
}

static void number(Buf *o, const char *key, double value, const char *after) {
  buf_json_num(o, key, value);
  buf_cstr(o, after);
}

static void bytes(Buf *o, const char *key, double value, const char *after) {
  number(o, key, round(value), after); /* plans share them out in fractions */
}

static void truth(Buf *o, const char *key, bool value, const char *after) {
  buf_printf(o, "\"%s\": %s%s", key, value ? "true" : "false", after);
}

static void kernel(const SimReport *r, const SimKernel *k, Buf *o) {
  bool tpu = r->chip->kind == CHIP_TPU;
  buf_byte(o, '{');
  text(o, "name", k->name, ", ");
  text(o, "op", k->op, ", ");
  number(o, "cycles", (tpu ? k->est_cycles : k->cycles) * k->count, ", ");
  number(o, "time_s", k->time_s * k->count, ", ");
  number(o, "count", k->count, ", ");
  number(o, "run_time_s", k->time_s, ", ");
  number(o, "start_s", k->start_s, ", ");
  text(o, "bound", sim_bound_name(k->bound), ", ");
  number(o, "flops", k->flops * k->count, ", ");
  bytes(o, "bytes", k->bytes * k->count, ", ");
  bytes(o, "cached_bytes", k->cached * k->count, ", ");
  bytes(o, "transfer_bytes", k->beside * k->count, ", ");
  number(o, "utilisation", k->utilisation, ", ");
  truth(o, "modelled", k->modelled, ", ");
  truth(o, "unknown", k->unknown, ", ");
  text(o, "place", k->place, "}");
}

static void owner(const SimReport *r, SimOwner which, Buf *o) {
  const SimHolding *h = &r->owners[which];
  buf_byte(o, '{');
  text(o, "owner", sim_owner_name(which), ", ");
  bytes(o, "bytes", h->bytes, ", ");
  bytes(o, "padding", h->padding, ", ");
  number(o, "buffers", h->n, ", ");
  text(o, "largest", h->largest ? h->largest->name : "", ", ");
  text(o, "place", h->largest ? h->largest->place : "", "}");
}

static void buffer(const SimBuffer *b, Buf *o) {
  buf_byte(o, '{');
  text(o, "name", b->name, ", ");
  text(o, "role", b->role, ", ");
  text(o, "type", b->type, ", ");
  bytes(o, "bytes", b->bytes, ", ");
  bytes(o, "padding", b->padding, ", ");
  text(o, "owner", sim_owner_name(b->owner), ", ");
  truth(o, "on_chip", b->on_chip, ", ");
  text(o, "place", b->place, "}");
}

static void totals(const SimReport *r, Buf *o) {
  const struct {
    const char *k;
    double v;
  } f[] = {{"time_s", r->time_s},
           {"cycles", r->cycles},
           {"peak_bytes", r->peak_bytes},
           {"hbm_bytes", r->hbm_bytes},
           {"limit_bytes", r->limit_bytes},
           {"argument_bytes", r->argument_bytes},
           {"output_bytes", r->output_bytes},
           {"alias_bytes", r->alias_bytes},
           {"temp_bytes", r->temp_bytes},
           {"network_s", r->network_s},
           {"network_exposed_s", r->network_exposed_s},
           {"transfer_s", r->exposed_copy_s},
           {"host_bytes", r->host_bytes},
           {"host_transfer_s", r->host_transfer_s},
           {"host_exposed_s", r->host_exposed_s},
           {"computed_again_s", r->rematerialized_s},
           {"host_s", r->host_s},
           {"flops", r->flops},
           {"bytes", r->model_bytes},
           {"flops_recomputed", r->flops_recomputed},
           {"mfu", r->mfu},
           {"hfu", r->hfu},
           {"energy_j", r->energy_j},
           {"usd", r->usd},
           {"usd_per_hour", r->usd_per_hour},
           {"machines", r->price.offer ? r->price.machines : NAN},
           {"machine_share", r->price.offer ? r->price.share : NAN}};
  for (int i = 0; i < COUNT_OF(f); i++)
    (strstr(f[i].k, "bytes") ? bytes : number)(o, f[i].k, f[i].v, ", ");
}

void sim_json(const SimReport *r, const char *program, bool one_line, Buf *o) {
  size_t start = o->n;
  buf_byte(o, '{');
  if (program) text(o, "program", program, ", ");
  text(o, "chip", r->chip->name, ", ");
  number(o, "devices", r->devices, ", ");
  text(o, "server", r->server ? r->server->name : "", ", ");
  truth(o, "replicated", r->replicated, ", ");
  truth(o, "fits", r->fits, ", ");
  totals(r, o);
  text(o, "price_source", r->price_source, ", ");
  number(o, "unknown_calls", r->unknown_calls, ", ");
  text(o, "unknown_names", r->unknown_names, ", ");
  number(o, "unknown_loop_count", r->unknown_loops, ", ");
  truth(o, "unknown_loops", r->unknown_loops > 0, ",\n \"kernels\": [");
  for (int i = 0; i < r->n_kernels; i++) {
    buf_cstr(o, i ? ",\n  " : "\n  ");
    kernel(r, &r->kernels[i], o);
  }
  buf_cstr(o, "],\n \"owners\": [");
  for (int i = 0, n = 0; i < SIM_OWNERS; i++) {
    if (r->owners[i].bytes <= 0) continue;
    buf_cstr(o, n++ ? ",\n  " : "\n  ");
    owner(r, (SimOwner)i, o);
  }
  buf_cstr(o, "],\n \"buffers\": [");
  for (int i = 0; i < r->n_buffers && i < MOST_BUFFERS; i++) {
    buf_cstr(o, i ? ",\n  " : "\n  ");
    buffer(&r->buffers[i], o);
  }
  buf_cstr(o, "]}");
  for (size_t i = start; i < o->n && one_line; i++) /* strings have none */
    if (o->p[i] == '\n') o->p[i] = ' ';
  buf_byte(o, '\n');
}
