/* What a program says twice or in a roundabout way: operations with equal operands and attributes are
 * one, and one place looked up in an array is a slice of it. */
#include "sim/hlo/hlo.h"

/* ---- operations said before ------------------------------------------------------------------ */

typedef struct Said Said;
struct Said {
  const Op *op;
  HNode *result;
  Said *before; /* another one with the same operands */
};

/* Without effects, and not made node by node, where equals are found anyway (hlo_unique). */
static bool repeatable(const Op *op) {
  OpClass c = op_info[op->kind].cls;
  return (c == OC_CONTRACT || c == OC_INDEX || c == OC_MOVE || c == OC_LINALG) &&
         op->n_results == 1 && op->n_regions == 0;
}

static void key_of(const Op *op, HNode *const *in, const Maker *b, Buf *key) {
  buf_printf(key, "op%d in %p", (int)op->kind, (void *)b->comp);
  for (int i = 0; i < op->n_operands; i++) buf_printf(key, ",%d", in[i]->id);
}

static bool same(const Op *x, const Op *y) {
  const Type *a = x->results[0].type, *b = y->results[0].type;
  if (a->dtype != b->dtype || a->rank != b->rank || x->n_attrs != y->n_attrs ||
      memcmp(a->dims, b->dims, sizeof *a->dims * (size_t)a->rank) != 0)
    return false;
  for (int i = 0; i < x->n_attrs; i++)
    if (!str_eq(x->attrs[i].name, y->attrs[i].name) ||
        !attr_equal(x->attrs[i].value, y->attrs[i].value))
      return false;
  return true;
}

HNode *hlo_said_before(Maker *b, const Op *op, HNode *const *in) {
  if (!repeatable(op)) return NULL;
  Buf key = {0};
  key_of(op, in, b, &key);
  const Said *s = map_get(b->said, (Str){key.p, key.n});
  buf_free(&key);
  while (s && !same(s->op, op)) s = s->before;
  return s ? s->result : NULL;
}

void hlo_say(Maker *b, const Op *op, HNode *const *in, HNode *result) {
  if (!repeatable(op)) return;
  Buf key = {0};
  key_of(op, in, b, &key);
  Said *s = ARENA_NEW(b->g->arena, Said);
  *s = (Said){op, result, map_get(b->said, (Str){key.p, key.n})};
  map_set(b->said, (Str){key.p, key.n}, s);
  buf_free(&key);
}

/* ---- one place ------------------------------------------------------------------------------- */

/* A gather at one place that is known, in one dimension: a slice, clamped as gathers are. NULL: it is
 * none. */
HNode *hlo_known_place(Maker *b, const Op *op, HNode *const *in, int rank, const int64_t *d) {
  const int64_t *at, *size;
  const HNode *x = in[0];
  if (hlo_count(in[1]) != 1 || in[1]->kind != H_CONST || !in[1]->splat || x->rank > 64 ||
      op_ints(op, "start_index_map", &at) != 1 || op_ints(op, "slice_sizes", &size) != x->rank)
    return NULL;
  int64_t lo[64], hi[64], step[64];
  for (int i = 0; i < x->rank; i++) lo[i] = 0, hi[i] = size[i], step[i] = 1;
  double last = (double)(x->d[at[0]] - size[at[0]]), place = in[1]->value;
  lo[at[0]] = (int64_t)(place < 0 ? 0 : place > last ? last : place);
  hi[at[0]] += lo[at[0]];
  return hlo_reshape(b, op, hlo_slice(b, op, in[0], size, lo, hi, step), rank, d);
}
