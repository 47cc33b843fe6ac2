/* order: nodes as written, but each that gives back more memory than it takes as soon as it can
 * run.
 *
 * What is written last need not run last: an optimizer's update stands at the end of a step, and if
 * it ran there all gradients would live until then. Run where its gradient is made, it frees the
 * gradient, writes over the argument that its result takes the memory of, and reads what is still
 * in the caches. A node takes the bytes of its results; it gives back what nobody reads after it.
 * An argument that a result may take (tf.aliasing_output, what a loop carries) counts as given back
 * by its last reader. Nodes with regions or effects stay where they are.
 *
 * The opposite is tried as well: a node that takes more than it gives back waits until another
 * needs its results. That order is kept where it is worth its while. */
#include <stdlib.h>

#include "compile/plan/plan_priv.h"

#define MOST ((int64_t)1 << 44) /* bytes: more than any memory, and sums of it are numbers still */
#define SMALL 4096              /* bytes that do not matter: scalars that many steps wait for */

typedef VEC(int) Ints;

typedef struct Storage { /* memory of a value and its aliases */
  int64_t bytes;
  int n_readers, left; /* all, still to run; the region's end is one */
  int into;            /* storage of an argument that it may take; -1 */
  bool counts;         /* given back after its last reader */
  bool result;         /* of main: there from beginning to end */
  Ints readers;
} Storage;

typedef struct Item {
  Ints in, out;       /* storages, each once */
  Ints before, after; /* items that this one waits for, that wait for it */
  int waiting, seen;
  bool moves, alias, done;
  bool begun; /* those that should run before it are on their way */
} Item;

typedef struct Orderer {
  const Func *main;
  const Region *r;
  const Nodes *nodes;
  Item *items;
  VEC(Storage) storages;
  int *storage, *maker; /* by value: storage; item + 1. -1, 0: from outside */
  Ints ready;
  Nodes out;
  int64_t alive, peak;
  int looks; /* so far: waits_for */
} Orderer;

static bool add_once(Ints *list, int x) {
  for (int i = 0; i < list->n; i++)
    if (list->v[i] == x) return false;
  *vec_push(list) = x;
  return true;
}

static int new_storage(Orderer *o, const Value *v, bool counts) {
  int64_t bytes = v->type->kind == TY_TENSOR ? MIN(MOST, type_bytes(v->type)) : 0;
  *vec_push(&o->storages) = (Storage){.bytes = bytes, .into = -1, .counts = counts};
  return o->storage[v->id] = o->storages.n - 1;
}

/* ---- what reads and makes what ---- */

static void add_read(Orderer *o, int item, const Value *v) {
  Item *t = &o->items[item];
  int maker = o->maker[v->id] - 1, s = o->storage[v->id];
  if (maker >= 0 && maker != item && add_once(&t->before, maker))
    *vec_push(&o->items[maker].after) = item;
  if (s < 0 || t->alias || !add_once(&t->in, s)) return;
  o->storages.v[s].n_readers++;
  *vec_push(&o->storages.v[s].readers) = item;
}

static void add_result(Orderer *o, int item, const Value *v) {
  o->maker[v->id] = item + 1;
  *vec_push(&o->items[item].out) = new_storage(o, v, true);
}

static bool can_move(const Op *op) {
  OpClass c = op_info[op->kind].cls;
  return c != OC_CONTROL && c != OC_COLLECTIVE && c != OC_RNG && op_is_pure(op);
}

static void add_op(Orderer *o, int item, Op *op) {
  Item *t = &o->items[item];
  t->alias = op_is_alias(op) || op->kind == OP_CONSTANT;
  t->moves = t->alias || can_move(op);
  for (int i = 0; i < op->n_operands; i++) add_read(o, item, op->operands[i]);
  Value **captured;
  int n = op_captures(op, &captured);
  for (int i = 0; i < n; i++) add_read(o, item, captured[i]);
  free(captured);
  for (int i = 0; i < op->n_results; i++) {
    o->maker[op->results[i].id] = item + 1;
    if (op_is_alias(op)) o->storage[op->results[i].id] = o->storage[op->operands[i]->id];
    else if (op->kind != OP_CONSTANT) add_result(o, item, &op->results[i]);
  }
}

static void add_fusion(Orderer *o, int item, const Fusion *f) {
  o->items[item].moves = true;
  for (int i = 0; i < f->n_in; i++) add_read(o, item, f->in[i]);
  for (int i = 0; i < f->n_out; i++)
    if (f->out[i].part <= 0) add_result(o, item, f->out[i].v);
}

/* The result of the region whose memory argument i may become; -1. */
static int result_of_arg(const Orderer *o, int i) {
  const Region *r = o->r;
  if (r->parent) return r->parent->kind == OP_WHILE && r == r->parent->regions[1] ? i : -1;
  Attr *a = attrs_get(o->main->arg_attrs[i], o->main->n_arg_attrs[i], "tf.aliasing_output");
  return a && a->i >= 0 && a->i < r->last->n_operands ? (int)a->i : -1;
}

static void add_args(Orderer *o) {
  for (int i = 0; i < o->r->n_args; i++) new_storage(o, o->r->args[i], result_of_arg(o, i) >= 0);
}

static void add_end(Orderer *o) {
  const Op *end = o->r->last;
  for (int j = 0; j < end->n_operands; j++) {
    int s = o->storage[end->operands[j]->id];
    if (s < 0) continue;
    o->storages.v[s].n_readers++;
    o->storages.v[s].result = !o->r->parent;
  }
  for (int i = 0; i < o->r->n_args; i++) {
    int j = result_of_arg(o, i), arg = o->storage[o->r->args[i]->id];
    int s = j >= 0 ? o->storage[end->operands[j]->id] : -1;
    if (s >= 0 && s != arg && o->storages.v[s].bytes == o->storages.v[arg].bytes)
      o->storages.v[s].into = arg;
  }
}

/* ---- the order ---- */

static bool last_reader(const Storage *s, const Item *t, int storage) {
  bool reads = false;
  for (int i = 0; i < t->in.n && !reads; i++) reads = t->in.v[i] == storage;
  return s->left == (reads ? 1 : 0);
}

static int64_t taken(const Orderer *o, const Item *t) {
  int64_t bytes = 0;
  for (int i = 0; i < t->out.n; i++) {
    const Storage *s = &o->storages.v[t->out.v[i]];
    if (!s->result) bytes += s->bytes;
  }
  return bytes;
}

/* What nobody reads after it; `share`: of what others still have to read, its part. */
static int64_t given(const Orderer *o, const Item *t, bool share) {
  int64_t bytes = 0;
  for (int i = 0; i < t->in.n; i++) {
    const Storage *s = &o->storages.v[t->in.v[i]];
    if (s->counts && !s->result && (share || s->left == 1)) bytes += s->bytes / s->left;
  }
  return bytes;
}

/* Every argument that a result of the item is meant to take must be free by then. */
static bool args_are_free(const Orderer *o, const Item *t) {
  for (int i = 0; i < t->out.n; i++) {
    int arg = o->storages.v[t->out.v[i]].into;
    if (arg >= 0 && !last_reader(&o->storages.v[arg], t, arg)) return false;
  }
  return true;
}

static void run_item(Orderer *o, int item) {
  Item *t = &o->items[item];
  t->done = true;
  *vec_push(&o->out) = o->nodes->v[item];
  o->alive += taken(o, t);
  o->peak = MAX(o->peak, o->alive);
  o->alive -= given(o, t, false);
  for (int i = 0; i < t->in.n; i++) {
    Storage *s = &o->storages.v[t->in.v[i]];
    if (--s->left != 1) continue;
    for (int k = 0; k < s->readers.n; k++)
      if (!o->items[s->readers.v[k]].done) *vec_push(&o->ready) = s->readers.v[k];
  }
  for (int i = 0; i < t->after.n; i++)
    if (--o->items[t->after.v[i]].waiting == 0) *vec_push(&o->ready) = t->after.v[i];
}

static void run_ready(Orderer *o) {
  for (int k = 0; k < o->ready.n; k++) {
    const Item *t = &o->items[o->ready.v[k]];
    if (t->done || t->waiting || !t->moves) continue;
    int64_t takes = taken(o, t);
    if (t->alias || ((takes <= SMALL || takes < given(o, t, false)) && args_are_free(o, t)))
      run_item(o, o->ready.v[k]);
  }
  o->ready.n = 0;
}

/* Does it wait for `other`? Each is looked at once: `seen`. */
static bool waits_for(Orderer *o, int item, int other, int seen) {
  Item *t = &o->items[item];
  if (item == other) return true;
  if (t->done || t->seen == seen) return false;
  t->seen = seen;
  for (int i = 0; i < t->before.n; i++)
    if (waits_for(o, t->before.v[i], other, seen)) return true;
  return false;
}

static void run_needed(Orderer *o, int item);

/* What a loop carries is read by all who can before its next value is made, which then takes its
 * memory and need not be moved there. Of two that read what the other replaces one must be first. */
static void run_readers_before(Orderer *o, int item) {
  for (int i = 0; i < o->items[item].out.n; i++) {
    int arg = o->storages.v[o->items[item].out.v[i]].into;
    for (int k = 0; arg >= 0 && k < o->storages.v[arg].readers.n; k++) {
      int reader = o->storages.v[arg].readers.v[k];
      const Item *t = &o->items[reader];
      if (t->done || t->begun || !t->moves || taken(o, t) > SMALL + given(o, t, false) ||
          waits_for(o, reader, item, ++o->looks))
        continue;
      run_needed(o, reader);
    }
  }
}

/* It and what it waits for. */
static void run_needed(Orderer *o, int item) {
  for (int i = 0; i < o->items[item].before.n; i++)
    if (!o->items[o->items[item].before.v[i]].done) run_needed(o, o->items[item].before.v[i]);
  if (o->items[item].done) return;
  if (o->r->parent && !o->items[item].begun) {
    o->items[item].begun = true;
    run_readers_before(o, item);
  }
  if (!o->items[item].done) run_item(o, item);
}

/* Would a reader of its results, and of nothing else that is still to be made, give memory back? */
static bool feeds_a_giver(const Orderer *o, const Item *t) {
  for (int i = 0; i < t->after.n; i++) {
    const Item *u = &o->items[t->after.v[i]];
    if (!u->done && u->waiting == 1 &&
        (u->alias ? feeds_a_giver(o, u) : u->moves && taken(o, u) < given(o, u, false)))
      return true;
  }
  return false;
}

static bool can_wait(const Orderer *o, const Item *t) {
  return t->moves && taken(o, t) > SMALL + given(o, t, true) && !feeds_a_giver(o, t);
}

static int64_t order(Orderer *o, bool wait) {
  o->alive = o->peak = 0;
  o->out = (Nodes){0};
  for (int i = 0; i < o->storages.n; i++) o->storages.v[i].left = o->storages.v[i].n_readers;
  for (int i = 0; i < o->nodes->n; i++) {
    o->items[i].done = o->items[i].begun = false;
    o->items[i].waiting = o->items[i].before.n;
    if (!o->items[i].waiting) *vec_push(&o->ready) = i;
  }
  run_ready(o);
  for (int pass = wait ? 0 : 1; pass < 2; pass++)
    for (int i = 0; i < o->nodes->n; i++) {
      if (o->items[i].done || (pass == 0 && can_wait(o, &o->items[i]))) continue;
      run_needed(o, i);
      run_ready(o);
    }
  return o->peak;
}

static void collect(Orderer *o) {
  add_args(o);
  for (int i = 0; i < o->nodes->n; i++) {
    if (o->nodes->v[i].kind == NODE_FUSION) add_fusion(o, i, o->nodes->v[i].fusion);
    else add_op(o, i, o->nodes->v[i].op);
  }
  add_end(o);
}

static void free_all(Orderer *o) {
  for (int i = 0; i < o->nodes->n; i++) {
    vec_free(&o->items[i].in);
    vec_free(&o->items[i].out);
    vec_free(&o->items[i].before);
    vec_free(&o->items[i].after);
  }
  for (int i = 0; i < o->storages.n; i++) vec_free(&o->storages.v[i].readers);
  vec_free(&o->storages);
  vec_free(&o->ready);
  free(o->items);
  free(o->storage);
  free(o->maker);
}

void order_nodes(const Func *main, const Region *r, Nodes *nodes) {
  Orderer o = {.main = main, .r = r, .nodes = nodes};
  size_t n = (size_t)main->n_values + 1;
  o.items = xcalloc((size_t)nodes->n + 1, sizeof *o.items);
  o.storage = xmalloc(n * sizeof *o.storage);
  o.maker = xcalloc(n, sizeof *o.maker);
  for (size_t i = 0; i < n; i++) o.storage[i] = -1;
  collect(&o);
  int64_t peak = order(&o, false);
  Nodes best = o.out;
  if (order(&o, true) < peak - peak / 32) {
    vec_free(&best);
    best = o.out;
  } else {
    vec_free(&o.out);
  }
  free_all(&o);
  vec_free(nodes);
  *nodes = best;
}
