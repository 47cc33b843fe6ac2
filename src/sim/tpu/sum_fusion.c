/* Arrays that products and a sum read, as a gradient that has a bias: made once where they are added
 * up, and written on the way, or again for each of the products. Whichever takes less time, with the
 * vector unit and the transfers of a kernel beside each other. */
#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

/* An operation on a register takes the compiler's vector unit so many times what it does at its best.
 * Read off chains of 1 to 39 operations before products of 128, on all generations: the length from
 * which on they are stored gives 1.27 to 1.39; with products of 512 and 1024, 1.13 to 1.33. */
#define SLOW 1.3

static double moved(const double *rate, const HNode *n) {
  int width = (int)(hlo_bits(n->dt) / 8);
  return rate[width > 4 ? 4 : width] * (double)hlo_count(n) / 1024;
}

typedef struct Times {
  const CostParams *params;
  double made; /* cycles to make the array */
  double in;   /* to bring what it is made from */
  double read; /* to bring it */
  double stored, repeated;
  int products;
} Times;

/* What the products that read n, or a view of it, take with and without it. */
static void add_products(Times *t, const HNode *n, int depth) {
  for (int i = 0; i < n->n_users && depth < 4; i++) {
    const HNode *u = n->users[i];
    if (u->kind == H_TRANSPOSE || u->kind == H_RESHAPE) add_products(t, u, depth + 1);
    if (u->kind != H_CONV) continue;
    const HNode *other = u->in[u->in[0] == n];
    double beside = moved(t->params->product.r, other) + moved(t->params->product.o, u);
    t->stored += beside + t->read;
    t->repeated += MAX(t->made, beside + t->in);
    t->products++;
  }
}

bool tpu_comes_with_sum(const CostParams *params, const HNode *n, double slots, double in) {
  double narrow = hlo_bits(n->dt) < 32 ? 1.5 : 0; /* to take apart and to pack */
  Times t = {.params = params, .in = in, .read = moved(params->product.r, n)};
  t.made = SLOW * params->cvpu * params->cores * (slots + 1 + narrow) * (double)hlo_count(n) / 1024;
  t.stored = MAX(t.made, in + moved(params->product.o, n));
  t.repeated = MAX(t.made, in);
  add_products(&t, n, 0);
  return t.products > 1 && t.stored < t.repeated;
}

int tpu_leaves(const HNode *n, bool stored) {
  const HNode *met[64] = {n};
  int found = 1, nl = 0;
  int64_t count = hlo_count(n);
  for (int at = 0; at < found; at++) {
    const HNode *x = met[at];
    bool leaf = x != n && (x->kind != H_EWISE || x->val || x->is_output);
    nl += leaf;
    if (leaf && stored && !x->val) return 0;
    for (int i = 0; i < x->n_in && !leaf; i++) {
      const HNode *y = x->in[i];
      bool seen = hlo_const_only(y) || y->kind == H_BCAST || hlo_count(y) != count;
      for (int k = 0; k < found && !seen; k++) seen = met[k] == y;
      if (!seen && found < COUNT_OF(met)) met[found++] = y;
    }
  }
  return nl;
}

/* Does it add up, or compare, rows of n, perhaps widened? */
static bool sums_rows(const HNode *n, const HNode *user) {
  if (user->kind == H_EWISE && user->op == OP_CONVERT)
    for (int i = 0; i < user->n_users; i++)
      if (user->users[i]->kind == H_REDUCE) return sums_rows(n, user->users[i]);
  return user->kind == H_REDUCE && user->dims[user->n_dims - 1] == n->rank - 1;
}

bool tpu_walked_again(const HNode *n) {
  bool sum = false, squares = false;
  if (n->kind != H_EWISE || n->n_users < 2 || n->comp->parent || n->soft) return false;
  if (n->op == OP_CONVERT && hlo_bits(n->dt) > hlo_bits(n->in[0]->dt)) return false;
  for (int i = 0; i < n->n_users; i++) {
    const HNode *u = n->users[i];
    sum |= sums_rows(n, u);
    squares |= u->op == OP_MULTIPLY && u->in[0] == n && u->in[1] == n && u->n_users == 1 &&
               sums_rows(n, u->users[0]);
    if (u->kind != H_REDUCE && (u->kind != H_EWISE || hlo_count(u) != hlo_count(n))) return false;
  }
  int made_of = sum || squares ? tpu_leaves(n, true) : 0;
  return made_of == 2 || (sum && made_of > 2);
}
