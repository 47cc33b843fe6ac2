/* Running sums. XLA writes one as windows over blocks of 128 elements, a running sum of the blocks'
 * last elements, and an addition. The summed dimension moves out of the tile before and back after
 * it: out of the lanes in two steps, and after padding to whole blocks. */
#include <math.h>

#include "sim/tpu/cost.h"
#include "sim/tpu/tpu.h"

/* The dimension that a window covers whole and that is longer than a block, or -1. */
static int summed(const Kernel *k) {
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    if (n->kind != H_RWIN || !n->lo) continue;
    for (int d = 0; d < n->rank && n->rank == n->in[0]->rank; d++)
      if (n->lo[d] > RUN_BLOCK && n->lo[d] >= n->in[0]->d[d] && n->d[d] == n->in[0]->d[d]) return d;
  }
  return -1;
}

bool tpu_running_sum(const Kernel *k, RunningSum *s) {
  int along = summed(k);
  if (along < 0 || !s) return along >= 0;
  const HValue *v = k->roots.v[0]->val, *from = k->reads.n ? k->reads.v[0] : v;
  if (!v || v->node->rank < 1 || along >= v->node->rank || from->node->rank != v->node->rank)
    from = v;
  const HNode *n = v->node;
  int w = tpu_width(v), lane = from->order[0];
  *s = (RunningSum){.width = w < 2 ? 2 : w, .in_lanes = lane == along};
  double len = (double)n->d[along], blocks = ceil(len / RUN_BLOCK);
  double rows = (double)hlo_count(n) / len;
  double lanes = s->in_lanes ? rows : (double)n->d[lane], others = rows / lanes;
  double few = blocks > 4 ? 8 : 4; /* rows of a tile */
  s->whole = len == blocks * RUN_BLOCK;
  s->apart = blocks > 4 && fmod(blocks, 8) > 0;
  s->plain = ceil(lanes / 128) * RUN_BLOCK * others * blocks / 8;
  s->tiles = ceil(lanes / 128) * RUN_BLOCK *
             (others > 1 ? ceil(others / 8) * blocks : ceil(blocks / few) * few / 8);
  s->work =
      others > 1 || blocks > 4 ? s->tiles : s->tiles * 1.2; /* half tiles take a little more */
  return true;
}

/* A pass over tiles, from memory to memory or within what stays on chip. */
static double pass(const CostParams *params, double in, double out, int width, bool far_in,
                   bool far_out) {
  double t = params->lbase;
  t += in * params->loop.r[width] * (far_in || params->cmem > 0 ? 1 : params->lvm);
  if (far_out) t += out * params->loop.o[width];
  else if (params->cmem > 0) t += out * 1.2 * params->loop.o[width];
  else if (width < 4 && !params->nopack) t += out * (params->loop.o[width] - params->loop.r[width]);
  return t;
}

#define TURNED 768  /* tiles of both sides that are turned at a time */
#define WINDOWS 1.1 /* of what a register takes in a depthwise convolution: to sum up a block */
#define ADDED 0.6   /* and to add the sum of what comes before */

/* Out of the lanes in blocks that do not fill tiles: the whole array is turned, padded to blocks, cut
 * again and turned back, each by a kernel of its own. */
static double turned_whole(const CostParams *params, const RunningSum *s, double far) {
  double windows = ceil(2 * far / TURNED);
  double turn = windows * (params->lbase + 70) + far * params->lane;
  const Rates *at = &params->loop;
  double pack = s->width < 4 ? at->o[s->width] - at->r[s->width] : 0;
  double over = params->lbase + s->plain * (at->r[s->width] * params->lvm + pack);
  bool once = (far + s->plain) * 1024 * s->width <= params->one_bytes;
  double cut = over + (once ? 0 : (ceil(s->plain / params->lwin) - 1) * params->lq);
  double back = s->width < 4 ? over : 100 * ceil(s->plain / 384); /* the blocks */
  return params->lbase + 2 * turn + (s->whole ? 0 : 2 * cut) + 2 * over +
         (WINDOWS + ADDED) * params->dw * s->plain + back;
}

void tpu_scan(Schedule *p, Kernel *k) {
  const CostParams *params = p->params;
  RunningSum s;
  tpu_running_sum(k, &s);
  int width = s.width;
  double far = k->roots.v[0]->val->tiles;
  bool near = (params->fast > 0 && params->keep) || params->cmem > 0;
  bool quick = near && params->cmem <= 0; /* relayouts and windows at the speed of registers */
  double taken = 7 * params->dw * s.work; /* by the windows */
  double t = 2 * params->lbase;           /* the blocks' sums */
  t += pass(params, s.work, s.work, width, !near, !near); /* the addition */
  t += pass(params, far, far, width, !near, true);        /* the result's order */
  if (s.in_lanes && s.apart && quick) {
    t = turned_whole(params, &s, far);
  } else if (s.in_lanes) {
    double turn = quick ? 100 * ceil(s.work / 384)
                        : params->lbase + 2 * s.work * params->lane * (near ? 0.41 : 1);
    double window = quick ? params->lbase + 800 : params->base + taken;
    if (!near) window += s.work * (2 * params->loop.r[width] + params->loop.o[width]);
    t += 2 * turn + window + pass(params, far, far, width, true, !near);
    if (!s.whole)
      t += quick ? 100 * ceil(2 * far / 384) : pass(params, far, far, width, !near, !near);
  } else {
    t += params->base - params->lbase + pass(params, far, s.work, width, true, !near) + taken;
  }
  k->cycles = t;
  k->bound = SIM_MEMORY;
  k->util = MIN(1, far * (params->loop.r[width] + params->loop.o[width]) / k->cycles);
}
