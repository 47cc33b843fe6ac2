/* gemm: a whole product, its parts and tiles divided by the pool. */
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"
#include "dev/cpu/dot/gemm.h"

#define ALONE ((size_t)128 << 10) /* bytes that one thread packs sooner than another is told */

typedef struct Call {
  const Gemm *g;
  const GemmArgs *x;
  int64_t round;
  float *ahead, *other;
} Call;

static void aheads(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  gemm_ahead(c->g, c->x, c->ahead, begin, end);
}

static void others(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  gemm_other(c->g, c->x, c->round, c->other, begin, end);
}

static void tiles(void *arg, int64_t begin, int64_t end) { /* of this round */
  const Call *c = arg;
  int64_t first = c->round * gemm_round_tiles(c->g);
  float *scratch = cpu_scratch((size_t)gemm_scratch_floats(c->g) * 4);
  for (int64_t t = first + begin; t < first + end; t++)
    gemm_tile(c->g, c->x, c->ahead, c->other, t, scratch);
}

bool gemm_run(const Gemm *g, const GemmArgs *x, float *prepacked, bool fresh) {
  size_t ahead = (size_t)gemm_ahead_floats(g) * 4, other = (size_t)gemm_other_floats(g) * 4;
  Call c = {.g = g, .x = x, .ahead = prepacked ? prepacked : cpu_block_alloc(ahead)};
  bool ok = c.ahead && (!other || (c.other = cpu_block_alloc(other)));
  int64_t parts = gemm_ahead_parts(g);
  if (ok && (!prepacked || fresh)) cpu_parallel(parts, ahead <= ALONE ? parts : 1, aheads, &c);
  for (; ok && c.round < gemm_rounds(g); c.round++) {
    cpu_parallel(gemm_other_parts(g, c.round), 1, others, &c);
    int64_t per = gemm_round_tiles(g), all = g->tiles_m * g->tiles_n;
    cpu_parallel(MIN(per, all - c.round * per), 1, tiles, &c);
  }
  if (!prepacked) cpu_block_free(c.ahead, ahead);
  cpu_block_free(c.other, other);
  return ok;
}
