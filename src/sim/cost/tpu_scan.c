/* Running sums. XLA writes one as windows over blocks of 128 elements, a running sum of the blocks'
 * last elements, and an addition. The summed dimension moves out of the tile before and back after
 * it: out of the lanes in two steps, and after padding to whole blocks. */
#include <math.h>

#include "sim/cost/tpu.h"

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
static double pass(const Law *law, double in, double out, int width, bool far_in, bool far_out) {
  double t = law->lbase;
  t += in * law->loop.r[width] * (far_in || law->cmem > 0 ? 1 : law->lvm);
  if (far_out) t += out * law->loop.o[width];
  else if (law->cmem > 0) t += out * 1.2 * law->loop.o[width];
  else if (width < 4 && !law->nopack) t += out * (law->loop.o[width] - law->loop.r[width]);
  return t;
}

#define TURNED 768  /* tiles of both sides that are turned at a time */
#define WINDOWS 1.1 /* of what a register takes in a depthwise convolution: to sum up a block */
#define ADDED 0.6   /* and to add the sum of what comes before */

/* Out of the lanes in blocks that do not fill tiles: the whole array is turned, padded to blocks, cut
 * again and turned back, each by a kernel of its own. */
static double turned_whole(const Law *law, const RunningSum *s, double far) {
  double windows = ceil(2 * far / TURNED);
  double turn = windows * (law->lbase + 70) + far * law->lane;
  const Rates *at = &law->loop;
  double pack = s->width < 4 ? at->o[s->width] - at->r[s->width] : 0;
  double over = law->lbase + s->plain * (at->r[s->width] * law->lvm + pack);
  bool once = (far + s->plain) * 1024 * s->width <= law->one_bytes;
  double cut = over + (once ? 0 : (ceil(s->plain / law->lwin) - 1) * law->lq);
  double back = s->width < 4 ? over : 100 * ceil(s->plain / 384); /* the blocks */
  return law->lbase + 2 * turn + (s->whole ? 0 : 2 * cut) + 2 * over +
         (WINDOWS + ADDED) * law->dw * s->plain + back;
}

void tpu_scan(Plan *p, Kernel *k) {
  const Law *law = p->law;
  RunningSum s;
  tpu_running_sum(k, &s);
  int width = s.width;
  double far = k->roots.v[0]->val->tiles;
  bool near = (law->fast > 0 && law->keep) || law->cmem > 0;
  bool quick = near && law->cmem <= 0; /* relayouts and windows at the speed of registers */
  double taken = 7 * law->dw * s.work; /* by the windows */
  double t = 2 * law->lbase;           /* the blocks' sums */
  t += pass(law, s.work, s.work, width, !near, !near); /* the addition */
  t += pass(law, far, far, width, !near, true);        /* the result's order */
  if (s.in_lanes && s.apart && quick) {
    t = turned_whole(law, &s, far);
  } else if (s.in_lanes) {
    double turn =
        quick ? 100 * ceil(s.work / 384) : law->lbase + 2 * s.work * law->lane * (near ? 0.41 : 1);
    double window = quick ? law->lbase + 800 : law->base + taken;
    if (!near) window += s.work * (2 * law->loop.r[width] + law->loop.o[width]);
    t += 2 * turn + window + pass(law, far, far, width, true, !near);
    if (!s.whole) t += quick ? 100 * ceil(2 * far / 384) : pass(law, far, far, width, !near, !near);
  } else {
    t += law->base - law->lbase + pass(law, far, s.work, width, true, !near) + taken;
  }
  k->cycles = t;
  k->bound = SIM_MEMORY;
  k->util = MIN(1, far * (law->loop.r[width] + law->loop.o[width]) / k->cycles);
}
