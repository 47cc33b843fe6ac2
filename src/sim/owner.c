/* Whose memory it is, from names where a program has them and from its data flow where not.
 *
 * An argument that comes back updated (an output of its shape that depends on it element by
 * element) is state of a training step: of a program that returns a loss, that is given its state's
 * memory, or of which one such argument is what a product multiplies by. State that nothing but such
 * updates reads is an optimizer slot; state that also enters products, broadcasts or reductions is a
 * parameter. An argument that comes back with nothing but parts written into it, as the keys and
 * values of a decoding step, is a cache: that is no training. Whatever is not updated and feeds a
 * product as its right side, a lookup as its table or a broadcast is a parameter too, of a program
 * that only evaluates, or a frozen one; not so what is multiplied with a parameter that learns: those
 * are the examples, which the weight's gradient takes as its right side; nor what is multiplied with
 * itself. The rest is input.
 *
 * A temporary is a gradient when only element-wise work lies between it and the new value of a
 * parameter of its shape, or when it has a matrix parameter's shape, as its narrower copy has;
 * working memory when the kernel at the fullest moment reads or writes it; anything else waits for
 * a later kernel: in a training step, activations kept for the backward pass.
 */
#include "sim/owner.h"

#include <ctype.h>
#include <stdlib.h>

const char *sim_owner_name(SimOwner o) {
  static const char *const names[SIM_OWNERS] = {
      "parameters", "optimizer slots", "other state",    "caches",  "input",
      "results",    "gradients",       "kept for later", "working", "other"};
  return names[o];
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Where `word` begins as one of the words of the name, as "mu" in "state.opt_state[0].mu['w']". */
static const char *find_word(const char *name, const char *word) {
  size_t n = strlen(word);
  for (const char *s = name; *s; s++) {
    if (s > name && isalnum((unsigned char)s[-1])) continue;
    size_t k = 0;
    while (k < n && tolower((unsigned char)s[k]) == word[k]) k++;
    if (k == n && !isalnum((unsigned char)s[n])) return s;
  }
  return NULL;
}

/* The earliest of them, or the end of the name. */
static const char *first_word(const char *name, const char *const *words) {
  const char *best = name + strlen(name);
  for (; *words; words++) {
    const char *at = find_word(name, *words);
    if (at && at < best) best = at;
  }
  return best;
}

static const char *const slot_words[] = {"opt",      "optimizer",  "opt_state", "mu",     "nu",
                                         "momentum", "velocity",   "exp_avg",   "slot",   "slots",
                                         "trace",    "exp_avg_sq", "adam_m",    "adam_v", NULL};
static const char *const statistic_words[] = {"batch_stats",  "moving_mean", "moving_variance",
                                              "running_mean", "running_var", NULL};
static const char *const parameter_words[] = {"params", "param", "parameters", "state_dict", NULL};

/* ---- data flow ------------------------------------------------------------------------------- */

static bool same_dims(const HNode *a, const HNode *b) {
  return a->rank == b->rank && (!a->rank || !memcmp(a->d, b->d, sizeof *a->d * (size_t)a->rank));
}

typedef struct Walk {
  unsigned char *seen; /* by node id */
  VEC(HNode *) todo;
  bool updated, used; /* reaches an output element by element; is read by anything else */
  bool chosen;        /* and only as what a select takes or leaves */
} Walk;

/* Follows a value through element-wise work of its own shape. */
static void follow(HGraph *g, HNode *from, Walk *w) {
  memset(w->seen, 0, (size_t)g->n_nodes + 1);
  w->todo.n = 0;
  w->updated = w->used = false;
  w->chosen = true;
  *vec_push(&w->todo) = from;
  w->seen[from->id] = 1;
  while (w->todo.n) {
    HNode *n = w->todo.v[--w->todo.n];
    for (int i = 0; i < n->n_users; i++) {
      HNode *u = n->users[i];
      if (u->dead || w->seen[u->id]) continue;
      bool plain =
          (u->kind == H_EWISE || u->kind == H_COLL) && same_dims(u, from) && u->comp == from->comp;
      w->used |= !plain;
      if (!plain) continue;
      w->seen[u->id] = 1;
      w->chosen &= u->op == OP_SELECT || u->op == OP_CONVERT;
      w->updated |= u->is_output && u->dt == from->dt;
      *vec_push(&w->todo) = u;
    }
  }
}

/* Does a scatter write what it is given, whatever was there? */
static bool scatter_sets(const HNode *n) {
  const Op *op = n->src;
  const Region *r = op && op->n_regions ? op->regions[0] : NULL;
  return r && r->n_args == 2 && r->first == r->last && r->last->n_operands == 1 &&
         r->last->operands[0] == r->args[1];
}

static const HNode *loop_result(const HNode *loop, int k) {
  for (int i = 0; i < loop->n_users; i++)
    if (loop->users[i]->kind == H_GET && loop->users[i]->index == k) return loop->users[i];
  return NULL;
}

#define STEPS 4000 /* of one search */

/* Does argument p come back, and not as it was, by moves alone: parts of it taken and written, put
 * together, chosen between? n: where its elements have come to. */
static bool written_back(const HNode *p, const HNode *n, bool changed, int *budget) {
  bool main = !n->comp->parent;
  if (main && changed && n->is_output && n->dt == p->dt && same_dims(n, p)) return true;
  for (int k = 0; !main && n->is_output && k < n->comp->outputs.n; k++) { /* of a loop's body */
    const HNode *w = n->comp->owner,
                *r = n->comp->outputs.v[k] == n && w->kind == H_WHILE ? loop_result(w, k) : NULL;
    if (r && --*budget > 0 && written_back(p, r, changed, budget)) return true;
  }
  for (int i = 0; i < n->n_users; i++) {
    const HNode *u = n->users[i];
    if (u->dead || --*budget < 0) continue;
    for (int k = 0; u->kind == H_WHILE && k < u->n_in; k++)
      if (u->in[k] == n && written_back(p, u->comps[1]->params.v[k], changed, budget)) return true;
    bool part = u->kind == H_SLICE || u->kind == H_DSLICE || u->kind == H_CONCAT ||
                u->kind == H_RESHAPE || u->kind == H_TRANSPOSE;
    bool writes = (u->kind == H_DUS && (u->in[0] == n || u->in[1] == n)) ||
                  (u->kind == H_SCATTER && u->in[0] == n && scatter_sets(u)) ||
                  (u->kind == H_EWISE && u->op == OP_SELECT && main && u->in[0] != n);
    bool kept = u->kind == H_EWISE && (u->op == OP_CONVERT || u->op == OP_COPY);
    if ((part || writes || kept) && written_back(p, u, changed || writes, budget)) return true;
  }
  return false;
}

static bool is_form(const HNode *n) {
  return n->kind == H_RESHAPE || n->kind == H_TRANSPOSE || n->kind == H_SLICE ||
         n->kind == H_DSLICE || n->kind == H_CONCAT || (n->kind == H_EWISE && n->n_in == 1);
}

/* The node that changes of form have made n of. */
static const HNode *form_of(const HNode *n) {
  while (is_form(n) && n->n_in == 1) n = n->in[0];
  return n;
}

/* Does the first thing that is not a change of form take it as a weight? `matrix`: only a product
 * with something else does, as its right side, and the weight has two dimensions or more. */
static bool feeds_as_weight(const HNode *n, bool matrix, int depth) {
  for (int i = 0; i < n->n_users && depth < 8; i++) {
    const HNode *u = n->users[i];
    for (int k = 0; u->kind == H_WHILE && k < u->n_in; k++)
      if (u->in[k] == n && feeds_as_weight(u->comps[1]->params.v[k], matrix, depth + 1))
        return true;
    if (u->kind == H_CONV && u->n_in > 1 && u->in[1] == n && (!matrix || n->rank > 1) &&
        form_of(u->in[0]) != form_of(n))
      return true;
    bool other = (u->kind == H_GATHER && u->in[0] == n) ||
                 (u->kind == H_BCAST && n->rank > 0 && u->rank > n->rank);
    if ((other && !matrix) || (is_form(u) && feeds_as_weight(u, matrix, depth + 1))) return true;
  }
  return false;
}

/* Is it multiplied by an argument that is none, but for changes of form? Then it is examples, though
 * the gradient of that argument takes it as the right side of a product. */
static bool feeds_as_examples(const HNode *n, int depth) {
  for (int i = 0; i < n->n_users && depth < 8; i++) {
    const HNode *u = n->users[i];
    for (int k = 0; u->kind == H_WHILE && k < u->n_in; k++)
      if (u->in[k] == n && feeds_as_examples(u->comps[1]->params.v[k], depth + 1)) return true;
    if (u->kind == H_CONV && u->n_in > 1 && u->in[0] == n) {
      const HNode *by = form_of(u->in[1]);
      if (by->kind == H_PARAM && by != form_of(n) && !feeds_as_examples(by, depth + 3)) return true;
    }
    if (is_form(u) && feeds_as_examples(u, depth + 1)) return true;
  }
  return false;
}

/* Is it multiplied with an argument that comes back updated, but for changes of form? */
static bool meets_learning(const HGraph *g, const HNode *n, const bool *updated, int depth) {
  for (int i = 0; i < n->n_users && depth < 8; i++) {
    const HNode *u = n->users[i];
    if (u->dead) continue;
    if (u->kind == H_CONV && u->n_in > 1) {
      const HNode *other = form_of(u->in[u->in[0] == n]);
      if (other->kind == H_PARAM && other->comp == g->main && updated[other->index]) return true;
    }
    if (is_form(u) && meets_learning(g, u, updated, depth + 1)) return true;
  }
  return false;
}

static bool is_float(DType t) { return dtype_is_float(t) || dtype_is_complex(t); }

static bool is_named(const char *name) { return *first_word(name, parameter_words); }

/* Is this the step of a training? A loss, memory that is given away, or a weight that comes back
 * updated tells: one of the parameters by name, where some are called that. */
static bool is_step(HGraph *g, Walk *w) {
  for (int i = 0; i < g->n_params; i++)
    if (g->donated[i]) return true;
  for (int i = 0; i < g->main->outputs.n; i++)
    if (g->main->outputs.v[i]->rank == 0 && is_float(g->main->outputs.v[i]->dt)) return true;
  bool names = false;
  for (int i = 0; i < g->n_params; i++) names |= is_named(g->param_names[i]);
  for (int i = 0; i < g->n_params; i++) {
    HNode *p = g->main->params.v[i];
    if (!is_float(p->dt) || (names && !is_named(g->param_names[i])) ||
        !feeds_as_weight(p, true, 0) || feeds_as_examples(p, 0))
      continue;
    follow(g, p, w);
    if (w->updated) return true;
  }
  return false;
}

Owners *owners_of_arguments(HGraph *g) {
  Owners *o = ARENA_NEW(g->arena, Owners);
  o->of_param = ARENA_ARRAY(g->arena, SimOwner, g->n_params + 1);
  bool *updated = o->updated = ARENA_ARRAY(g->arena, bool, g->n_params + 1);
  Walk w = {.seen = xcalloc((size_t)g->n_nodes + 1, 1)};
  bool *named = xcalloc((size_t)g->n_params + 1, sizeof *named);
  bool steps = is_step(g, &w);
  for (int i = 0; i < g->n_params; i++) {
    HNode *p = g->main->params.v[i];
    const char *name = g->param_names[i];
    bool real = is_float(p->dt) && p->rank > 0;
    follow(g, p, &w);
    int budget = STEPS;
    bool cache = real && (!w.updated || w.chosen) && written_back(p, p, false, &budget);
    updated[i] = ((w.updated && steps) || g->donated[i]) && !cache;
    o->training |= updated[i] && real;
    SimOwner *own = &o->of_param[i];
    const char *slot = first_word(name, slot_words), *stat = first_word(name, statistic_words),
               *param = first_word(name, parameter_words), *last = name + strlen(name);
    if (slot < last && slot < param) *own = real ? SIM_SLOTS : SIM_STATE;
    else if (stat < last) *own = SIM_STATE;
    else if (cache) *own = SIM_CACHES;
    else if (param < last && is_float(p->dt)) *own = SIM_PARAMETERS;
    else if (updated[i] && !real) *own = SIM_STATE; /* counters, random keys */
    else if (updated[i]) *own = w.used ? SIM_PARAMETERS : SIM_SLOTS;
    else
      *own = real && feeds_as_weight(p, false, 0) && !feeds_as_examples(p, 0) ? SIM_PARAMETERS
                                                                              : SIM_INPUT;
    named[i] = param < last;
  }
  for (int i = 0; i < g->n_params && o->training; i++)
    if (o->of_param[i] == SIM_PARAMETERS && !updated[i] && !named[i] &&
        meets_learning(g, g->main->params.v[i], updated, 0))
      o->of_param[i] = SIM_INPUT;
  vec_free(&w.todo);
  free(w.seen);
  free(named);
  return o;
}

void owners_of_values(Owners *o, HGraph *g) {
  o->gradient_for = ARENA_ARRAY(g->arena, const HNode *, g->n_nodes + 1);
  Walk w = {.seen = xcalloc((size_t)g->n_nodes + 1, 1)};
  const bool *updated = o->updated;
  /* Gradients: what only element-wise work separates from a parameter's new value, walked backwards
   * from the outputs of the parameters' shapes. */
  for (int i = 0; i < g->n_params && o->training; i++) {
    HNode *p = g->main->params.v[i];
    if (!updated[i] || o->of_param[i] != SIM_PARAMETERS) continue;
    follow(g, p, &w);
    for (int k = 0; k < g->main->outputs.n; k++) {
      HNode *out = g->main->outputs.v[k];
      if (!w.seen[out->id]) continue;
      w.todo.n = 0;
      *vec_push(&w.todo) = out;
      while (w.todo.n) {
        HNode *n = w.todo.v[--w.todo.n];
        for (int q = 0; q < n->n_in; q++) {
          HNode *x = n->in[q];
          if (!same_dims(x, p) || o->gradient_for[x->id] || x->kind == H_PARAM || x->is_output)
            continue;
          o->gradient_for[x->id] = p;
          if (x->kind == H_EWISE || x->kind == H_COLL) *vec_push(&w.todo) = x;
        }
      }
    }
  }
  /* gradients of narrower type, gathered by loops, and copies of weights keep the weights' shapes
   */
  for (const HComp *c = g->comps; c && o->training; c = c->next)
    for (int k = 0; k < c->nodes.n; k++) {
      const HNode *n = c->nodes.v[k];
      for (int i = 0; i < g->n_params && n->rank > 1 && !o->gradient_for[n->id]; i++) {
        const HNode *p = g->main->params.v[i];
        if (o->of_param[i] == SIM_PARAMETERS && n != p && is_float(n->dt) && same_dims(n, p))
          o->gradient_for[n->id] = p;
      }
    }
  vec_free(&w.todo);
  free(w.seen);
}

SimOwner owner_of_value(const Owners *o, const Schedule *p, const HValue *v, int t) {
  if (v->is_output && !p->comp->parent) return SIM_RESULTS;
  if (!p->comp->parent && v->node->rank > 0 && o->gradient_for[v->node->id]) return SIM_GRADIENTS;
  const Kernel *k = t < p->kernels.n ? p->kernels.v[t] : NULL;
  const HNode *root = k && k->roots.n ? k->roots.v[0] : NULL;
  if (!root || root->kind == H_WHILE || root->kind == H_COND) return SIM_KEPT;
  if (v->kernel == t) return SIM_WORKING;
  for (int i = 0; i < k->reads.n; i++)
    if (base_of(k->reads.v[i]) == v) return SIM_WORKING;
  return SIM_KEPT;
}
