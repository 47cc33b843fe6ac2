/* pass_threefry: the 20 rounds of threefry2x32 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", 2011), which JAX writes out wherever a program wants random numbers, become one operation:
 * 130 of them at each place took longer to compile than all else. Recognised from the end backwards,
 * every rotation and every key in its place; of a key that is zero the additions are gone already. */
#include "compile/pass/pass_priv.h"

#define PARITY 0x1BD11BDA
#define MOST_LEAVES 32
#define ROUNDS 5 /* of four; after each the keys are added */

typedef struct Cipher {
  Value *word[2]; /* before the first round, with the keys added; NULL: 0 */
  Value *key[3];  /* the third is made of the others; NULL: 0 */
  Value *last;    /* the first word after the last round, without the key */
} Cipher;

static bool number_of(const Value *v, uint32_t *out) {
  const void *p = value_splat(v);
  if (!p || v->type->dtype != DT_U32) return false;
  *out = (uint32_t)elem_get_i64(DT_U32, p);
  return true;
}

static bool is_number(const Value *v, uint32_t x) {
  uint32_t n;
  return number_of(v, &n) && n == x;
}

/* The same value, or the same spread in the same way. */
static bool is_same(const Value *a, const Value *b) {
  if (a == b) return true;
  const Op *p = value_def(a, OP_BROADCAST_IN_DIM), *q = value_def(b, OP_BROADCAST_IN_DIM);
  if (!p || !q || a->type != b->type) return false;
  const int64_t *to, *to2;
  int n = op_ints(p, "broadcast_dimensions", &to);
  if (op_ints(q, "broadcast_dimensions", &to2) != n) return false;
  for (int i = 0; i < n; i++)
    if (to[i] != to2[i]) return false;
  return is_same(p->operands[0], q->operands[0]);
}

/* ---- the rounds ---- */

static const uint32_t turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};

/* x, when v is x turned to the left; else NULL. */
static Value *turned(const Value *v, uint32_t by) {
  const Op *both = value_def(v, OP_OR);
  for (int k = 0; both && k < 2; k++) {
    const Op *up = value_def(both->operands[k], OP_SHIFT_LEFT),
             *down = value_def(both->operands[1 - k], OP_SHIFT_RIGHT_LOGICAL);
    if (up && down && up->operands[0] == down->operands[0] && is_number(up->operands[1], by) &&
        is_number(down->operands[1], 32 - by))
      return up->operands[0];
  }
  return NULL;
}

/* The first word after a round that gave `second`; NULL: no round did. *before: the second before. */
static Value *first_beside(const Value *second, uint32_t by, Value **before) {
  const Op *mix = value_def(second, OP_XOR);
  for (int k = 0; mix && k < 2; k++)
    if ((*before = turned(mix->operands[k], by))) return mix->operands[1 - k];
  return NULL;
}

static bool rounds_back(Value **first, Value **second, int round) {
  for (int i = 3; i >= 0; i--) {
    Value *before, *beside = first_beside(*second, turns[round % 2][i], &before);
    if (!round && !i && beside && beside == *first && beside == before) { /* 0 was added to */
      *first = NULL;
      *second = before;
      return true;
    }
    const Op *sum = beside == *first ? value_def(beside, OP_ADD) : NULL;
    if (!sum || (sum->operands[0] != before && sum->operands[1] != before)) return false;
    *first = sum->operands[sum->operands[0] == before];
    *second = before;
  }
  return true;
}

/* v = x + n, in either order */
static Value *less_number(Value *v, uint32_t n) {
  const Op *sum = value_def(v, OP_ADD);
  for (int k = 0; sum && k < 2; k++)
    if (is_number(sum->operands[k], n)) return sum->operands[1 - k];
  return NULL;
}

/* v = *word + *key, where the word comes from a round; *key is NULL when it is the word. */
static bool less_key(Value *v, uint32_t by, Value **word, Value **key) {
  Value *before;
  *word = v;
  *key = NULL;
  if (first_beside(v, by, &before)) return true;
  const Op *sum = value_def(v, OP_ADD);
  for (int k = 0; sum && k < 2; k++) {
    *word = sum->operands[k];
    *key = sum->operands[1 - k];
    if (first_beside(*word, by, &before)) return true;
  }
  return false;
}

/* v = word + *key */
static bool key_of(Value *v, const Value *word, Value **key) {
  const Op *sum = value_def(v, OP_ADD);
  *key = NULL;
  if (v == word) return true;
  if (!sum || (sum->operands[0] != word && sum->operands[1] != word)) return false;
  *key = sum->operands[sum->operands[0] == word];
  return true;
}

/* ---- the keys ---- */

/* Of one element spread, that element. */
static const Value *unspread(const Value *v) {
  while (v->def && (v->def->kind == OP_BROADCAST_IN_DIM || v->def->kind == OP_RESHAPE) &&
         v->def->operands[0]->type->rank == 0)
    v = v->def->operands[0];
  return v;
}

/* What v is the exclusive or of: numbers, into *number, and at most MOST_LEAVES others. */
static bool leaves_of(const Value *v, uint32_t *number, int *n, const Value **others) {
  uint32_t x;
  if (!v) return true;
  v = unspread(v);
  if (number_of(v, &x)) {
    *number ^= x;
    return true;
  }
  const Op *op = value_def(v, OP_XOR);
  if (op)
    return leaves_of(op->operands[0], number, n, others) &&
           leaves_of(op->operands[1], number, n, others);
  if (*n == MOST_LEAVES) return false;
  others[(*n)++] = v;
  return true;
}

/* Is the third key the exclusive or of the others and the parity, so all of them together that? */
static bool keys_fit(const Cipher *c) {
  uint32_t number = 0;
  const Value *others[MOST_LEAVES];
  int n = 0;
  for (int k = 0; k < 3; k++)
    if (!leaves_of(c->key[k], &number, &n, others)) return false;
  for (int i = 0; i < n; i++)
    for (int j = i + 1; j < n; j++)
      if (is_same(others[i], others[j])) { /* nothing, together */
        others[j] = others[n - 1];
        others[i] = others[n - 2];
        n -= 2;
        i = -1;
        break;
      }
  return n == 0 && number == PARITY;
}

/* ---- all of it ---- */

static bool match(Op *op, Cipher *c) {
  static const int shown[3] = {4, 2, 3}; /* the round after which the second word takes each key */
  Value *first = NULL, *second = &op->results[0], *keys[2][ROUNDS] = {{NULL}};
  for (int round = ROUNDS - 1; round >= 0; round--) {
    Value *before, *word, *sum = less_number(second, (uint32_t)round + 1);
    uint32_t by = turns[round % 2][3];
    if (!sum || !less_key(sum, by, &word, &keys[1][round])) return false;
    Value *last = first_beside(word, by, &before);
    if (first && !key_of(first, last, &keys[0][round])) return false;
    if (!first) c->last = last;
    first = last;
    second = word;
    if (!rounds_back(&first, &second, round)) return false;
  }
  c->word[0] = first;
  c->word[1] = second;
  for (int k = 0; k < 3; k++) c->key[k] = keys[1][shown[k]];
  for (int round = 0; round < ROUNDS; round++)
    for (int w = 0; w < 2; w++) {
      const Value *want = c->key[(round + 1 + w) % 3], *is = keys[w][round];
      bool asked = w || round < ROUNDS - 1;
      if (asked && is != want && !(is && want && is_same(is, want))) return false;
    }
  return keys_fit(c);
}

/* The op's result is that part of the cipher. */
static void put(Module *m, const Cipher *c, Op *at, int64_t part) {
  Value *in[4] = {c->word[0], c->word[1], c->key[0], c->key[1]};
  Type *type = op_type(at);
  Build b = {.m = m, .r = at->parent, .loc = at->loc};
  Op *end = at->parent->last;
  for (int k = 0; k < 4; k++)
    if (!in[k]) in[k] = b_full(&b, type, 0);
  NamedAttr a = b_int(&b, "part", part);
  Op *op = b_op(&b, OP_THREEFRY, 4, in, 1, &type, 1, &a, 0, NULL);
  compile_move_built(end, at);
  value_replace_all(at->parent->func, &at->results[0], &op->results[0]);
}

static bool is_of(const Op *op, OpKind kind, const Value *a, const Value *b) {
  return op->kind == kind && ((op->operands[0] == a && is_same(op->operands[1], b)) ||
                              (op->operands[1] == a && is_same(op->operands[0], b)));
}

static bool walk(Module *m, Region *r) {
  bool found = false;
  for (Op *op = r->first, *next; op; op = next) {
    Cipher c;
    next = op->next;
    for (int i = 0; i < op->n_regions; i++) found |= walk(m, op->regions[i]);
    if (op->kind != OP_ADD || op_type(op)->dtype != DT_U32 || !match(op, &c)) continue;
    found = true;
    Op *first = c.last->def; /* whole */
    while (first && !is_of(first, OP_ADD, c.last, c.key[2])) first = first->next;
    for (Op *x = first; x; x = x->next)
      if (is_of(x, OP_XOR, &op->results[0], &first->results[0])) put(m, &c, x, 2);
    if (first) put(m, &c, first, 0);
    put(m, &c, op, 1);
  }
  return found;
}

Err *pass_threefry(Module *m) { return walk(m, module_main(m)->body) ? pass_simplify(m) : NULL; }
