/* What a run takes whose loops were counted. The report holds a loop of unknown length once; the rest is linear: each further turn
 * of its body takes what the body takes without the unknown loops in it, which are counted by themselves. */
#include <stdlib.h>

#include "sim/sim.h"

/* How often the body of loop i runs in the report. */
static double times(const SimReport *r, int i) {
  double n = 1;
  for (; i >= 0; i = r->loops[i].parent) n *= r->loops[i].trips;
  return n;
}

static int unknown_above(const SimReport *r, int i) {
  do i = r->loops[i].parent;
  while (i >= 0 && !r->loops[i].unknown);
  return i;
}

/* One turn, without the unknown loops in it. */
static double own_s(const SimReport *r, int i) {
  double s = r->loops[i].body_s, n = times(r, i);
  for (int k = i + 1; k < r->n_loops; k++)
    if (r->loops[k].unknown && unknown_above(r, k) == i) s -= times(r, k) / n * r->loops[k].body_s;
  return s;
}

/* Turns of all loops with i's number in the report: a function that is called twice has its loops twice. */
static double times_of_number(const SimReport *r, int i) {
  double n = 0;
  for (int k = 0; k < r->n_loops; k++)
    if (r->loops[k].number == r->loops[i].number && r->loops[k].condition == r->loops[i].condition)
      n += times(r, k);
  return n;
}

typedef struct Ran {
  int n;
  const int64_t *bodies;
} Ran;

static bool counted(const SimReport *r, int i, const Ran *ran) {
  const SimLoop *l = &r->loops[i];
  return l->unknown && l->number >= 0 && l->number < ran->n && ran->bodies[l->number] >= 0;
}

/* How often the body of loop i ran. */
static double ran_times(const SimReport *r, int i, const Ran *ran) {
  if (i < 0) return 1;
  const SimLoop *l = &r->loops[i];
  if (!counted(r, i, ran)) return ran_times(r, l->parent, ran) * l->trips;
  return (double)ran->bodies[l->number] * times(r, i) / times_of_number(r, i);
}

double sim_ran_s(const SimReport *r, int n, const int64_t *bodies, double *trips) {
  Ran ran = {n, bodies};
  double s = r->time_s, *entered = xcalloc((size_t)n + 1, sizeof *entered);
  for (int i = 0; i < r->n_loops; i++) {
    const SimLoop *l = &r->loops[i];
    if (!counted(r, i, &ran)) continue;
    double share = times(r, i) / times_of_number(r, i), once = l->condition ? 2 : 1;
    s += ((double)bodies[l->number] - times_of_number(r, i) / once) * share * own_s(r, i);
    if (!l->condition) entered[l->number] += ran_times(r, l->parent, &ran);
  }
  for (int k = 0; k < n && trips; k++)
    trips[k] = bodies[k] < 0 || entered[k] <= 0 ? -1 : (double)bodies[k] / entered[k];
  free(entered);
  return s;
}
