/* Programs of a few operations start without generated code: their fusions run as strips. What that
 * costs more is added up from run to run; when it has come to what generating the code takes, that
 * is done after all, between two runs. A program with loops, or whose first run would pay for it,
 * has its code generated at once. */
#include "dev/cpu/cpu_priv.h"
#include "dev/cpu/strips/strips.h"

#define MOST_NODES 64
#define MOST_EXCESS_S 1e-4 /* of one run, or ... */
#define MOST_EXCESS 0.6    /* ... of its time */
#define COMPILE_S 5e-3
#define COMPILE_NODE_S 0.3e-3

struct Late {
  VEC(Strips *) strips;
  int nodes;
  bool always;           /* strips whatever they cost */
  double code_s;         /* a run of generated code */
  double run_s, spent_s; /* what a run takes longer, and all have */
};

static bool add_block(Code *c, Late *l, const Block *b) {
  for (int i = 0; i < b->n; i++) {
    const Step *s = &b->steps[i];
    if (s->kind == STEP_WHILE && !l->always) return false;
    if (s->kind == STEP_FUSED) {
      Strips *t = strips_new(s->fusion);
      if (!t) return false;
      *vec_push(&l->strips) = t;
      c->steps[s->id].fused = strips_code(t);
      l->run_s += strips_excess_s(t);
      l->code_s += strips_run_s(t);
      l->nodes += strips_nodes(t);
      if (l->nodes > MOST_NODES && !l->always) return false;
    }
    for (int k = 0; k < s->n_blocks; k++)
      if (!add_block(c, l, &s->blocks[k])) return false;
  }
  return true;
}

void late_free(Late *l) {
  if (!l) return;
  for (int i = 0; i < l->strips.n; i++) strips_free(l->strips.v[i]);
  vec_free(&l->strips);
  free(l);
}

bool late_start(Code *c) {
  const char *want = env_get("WEFT_STRIPS");
  if (want && !strcmp(want, "off")) return false;
  Late *l = xcalloc(1, sizeof *l);
  l->always = want && !strcmp(want, "always");
  bool ok = add_block(c, l, &c->plan->body);
  double most = MAX(MOST_EXCESS_S, MOST_EXCESS * l->code_s);
  ok = ok && (l->always || l->run_s <= most);
  if (ok && l->strips.n) c->late = l;
  else late_free(l);
  return ok;
}

void late_never(Late *l) { l->always = true; }

bool late_is_due(Late *l) {
  bool due = l->spent_s > COMPILE_S + COMPILE_NODE_S * l->nodes;
  l->spent_s += l->run_s;
  return due && !l->always;
}
