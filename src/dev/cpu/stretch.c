/* Stretches: steps between two exchanges that each process can do without looking at the others, found when the
 * program is compiled.
 *
 * All steps of one have the same owners. A value that several processes share lies with its owner, who may
 * be ahead: nothing of the stretch may be written over it. */
#include "dev/cpu/cpu_priv.h"

typedef VEC(const Place *) Places;

static bool is_by_itself(const Plan *p, const Step *s) {
  if (!s->owners || (s->kind != STEP_FUSED && s->kind != STEP_OP)) return false;
  for (int i = 0; i < s->n_out; i++) /* nor does it write what others write */
    if (s->out[i] >= 0 && p->places[s->out[i]].owners != s->owners) return false;
  return s->kind == STEP_FUSED ||
         (s->op->kind != OP_CUSTOM_CALL && op_info[s->op->kind].cls != OC_TEST);
}

static bool overlap(const Place *a, const Place *b) {
  return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* Does the step write where a place of others lies that the stretch reads? */
static bool writes_over(const Plan *p, const Step *s, const Places *read) {
  for (int i = 0; i < s->n_out; i++) {
    if (s->out[i] < 0 || p->places[s->out[i]].kind != PLACE_ARENA) continue;
    for (int k = 0; k < read->n; k++)
      if (overlap(&p->places[s->out[i]], read->v[k])) return true;
  }
  return false;
}

static void note_reads(const Plan *p, const Step *s, Places *read) {
  for (int i = 0; i < s->n_in; i++) {
    const Place *q = s->in[i] >= 0 ? &p->places[s->in[i]] : NULL;
    if (q && q->kind == PLACE_ARENA && q->owners && q->owners != s->owners) *vec_push(read) = q;
  }
}

static int length_from(const Plan *p, const Step *s, int most) {
  Places read = {0};
  int n = 0;
  while (n < most && s[n].owners == s->owners && is_by_itself(p, &s[n])) {
    note_reads(p, &s[n], &read);
    if (writes_over(p, &s[n], &read)) break;
    n++;
  }
  vec_free(&read);
  return n;
}

void stretches_find(Code *c, const Block *b) {
  for (int i = 0, next = 0; i < b->n && c->plan->n_procs > 1; i++) {
    const Step *s = &b->steps[i];
    for (int k = 0; k < s->n_blocks; k++) stretches_find(c, &s->blocks[k]);
    if (i < next) continue;
    c->steps[s->id].stretch = length_from(c->plan, s, b->n - i);
    next = i + MAX(c->steps[s->id].stretch, 1);
  }
}
