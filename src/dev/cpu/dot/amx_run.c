/* amx: a whole product, its parts and tiles divided by the pool. */
#include "dev/cpu/dot/amx.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define GRAIN 2e6 /* multiplications of a task */

typedef struct Call {
  const Amx *g;
  const GemmArgs *x;
  const AmxGather *gather;
  char *ahead;
} Call;

static void aheads(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  amx_ahead(c->g, c->x, c->ahead, begin, end);
}

static void tiles(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  char *scratch = cpu_scratch((size_t)amx_scratch_bytes(c->g));
  for (int64_t t = begin; t < end; t++) amx_tile(c->g, c->x, c->gather, c->ahead, t, scratch);
  amx_release(c->g);
}

int64_t amx_grain(const Amx *g) {
  double macs = (double)MIN(g->tile_m, g->m) * (double)MIN(g->tile_n, g->n) * (double)g->k;
  return (int64_t)(GRAIN / macs) + 1;
}

bool amx_run(const Amx *g, const GemmArgs *x, const AmxGather *gather, char *prepacked,
             bool fresh) {
  size_t bytes = prepacked ? 0 : (size_t)amx_ahead_bytes(g);
  Call c = {g, x, gather, bytes ? cpu_block_alloc(bytes) : prepacked};
  if (bytes && !c.ahead) return false;
  if (!prepacked || fresh) cpu_parallel(amx_ahead_parts(g), 1, aheads, &c);
  cpu_parallel(g->tiles_m * g->tiles_n, amx_grain(g), tiles, &c);
  if (!prepacked) cpu_block_free(c.ahead, bytes);
  return true;
}
