/* A report as a program of a recording: the same kernels, loops and buffers in prof's words. */
#include "sim/sim.h"

static ProfBound bound_of(SimBound b) {
  static const ProfBound to[] = {
      [SIM_COMPUTE] = PROF_COMPUTE, [SIM_MEMORY] = PROF_MEMORY,   [SIM_VECTOR] = PROF_VECTOR,
      [SIM_LATENCY] = PROF_LATENCY, [SIM_NETWORK] = PROF_NETWORK, [SIM_HOST] = PROF_LATENCY};
  return to[b];
}

ProfProgram *sim_profile(const SimReport *r, Prof *p, const char *name) {
  ProfProgram *q = prof_program(p, name, r->n_kernels, r->n_loops, r->n_lives);
  q->time_s = r->time_s;
  q->flops = r->flops;
  q->flops_recomputed = r->flops_recomputed;
  q->peak_bytes = r->hbm_bytes;
  Buf unknowns = {0};
  sim_unknowns(r, &unknowns);
  q->unknowns = prof_str(p, unknowns.n ? unknowns.p : "");
  buf_free(&unknowns);
  for (int i = 0; i < r->n_kernels; i++) {
    const SimKernel *k = &r->kernels[i];
    q->kernels[i] =
        (ProfKernel){.name = prof_str(p, k->name),
                     .op = prof_str(p, k->op),
                     .place = prof_str(p, k->place),
                     .shapes = "",
                     .bound = bound_of(k->bound),
                     .time_s = k->time_s,
                     .flops = k->flops,
                     .bytes = k->bytes,
                     .utilisation = k->utilisation,
                     .start_s = k->start_s,
                     .count = k->count,
                     .loop = k->loop,
                     .n_reads = k->n_reads,
                     .reads = arena_dup(p->arena, k->reads, sizeof *k->reads * (size_t)k->n_reads),
                     .modelled = k->modelled,
                     .collective = k->collective};
  }
  for (int i = 0; i < r->n_loops; i++)
    q->loops[i] = (ProfLoop){r->loops[i].body_s, r->loops[i].trips, r->loops[i].parent};
  for (int i = 0; i < r->n_lives; i++) {
    const SimBuffer *b = &r->lives[i];
    q->lives[i] = (ProfLife){.name = prof_str(p, b->name),
                             .role = prof_str(p, b->role),
                             .owner = sim_owner_name(b->owner),
                             .type = prof_str(p, b->type),
                             .place = prof_str(p, b->place),
                             .bytes = b->bytes,
                             .from_s = b->from_s,
                             .to_s = b->to_s,
                             .on_chip = b->on_chip,
                             .from_kernel = b->maker,
                             .to_kernel = -1};
  }
  prof_program_end(p, q);
  return q;
}

void sim_profile_device(const Chip *chip, ProfDevice *out) {
  const char *kind = chip_text(chip, "device_kind");
  *out = (ProfDevice){.kind = kind ? kind : chip->title,
                      .tpu = chip->kind == CHIP_TPU,
                      .gpu = chip->kind == CHIP_GPU,
                      .is_virtual = true,
                      .peak_flops = chip->peak_flops,
                      .bandwidth = chip->hbm_bandwidth,
                      .memory_bytes = chip->hbm_usable,
                      .link = chip_num(chip, "pcie", 0)};
}
