/* Arrays that products and a sum read, as a gradient that has a bias: made once where they are added
 * up, and written on the way, or again for each of the products. Whichever takes less time, with the
 * vector unit and the transfers of a kernel beside each other. */
#include "sim/plan/plan.h"

/* An operation on a register takes the compiler's vector unit so many times what it does at its best.
 * Read off chains of 1 to 39 operations before products of 128, on all generations: the length from
 * which on they are stored gives 1.27 to 1.39; with products of 512 and 1024, 1.13 to 1.33. */
#define SLOW 1.3

static double moved(const double *rate, const HNode *n) {
  int width = (int)(hlo_bits(n->dt) / 8);
  return rate[width > 4 ? 4 : width] * (double)hlo_count(n) / 1024;
}

typedef struct Times {
  const Law *law;
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
    double beside = moved(t->law->product.r, other) + moved(t->law->product.o, u);
    t->stored += beside + t->read;
    t->repeated += MAX(t->made, beside + t->in);
    t->products++;
  }
}

bool plan_comes_with_sum(const Law *law, const HNode *n, double slots, double in) {
  double narrow = hlo_bits(n->dt) < 32 ? 1.5 : 0; /* to take apart and to pack */
  Times t = {.law = law, .in = in, .read = moved(law->product.r, n)};
  t.made = SLOW * law->cvpu * law->cores * (slots + 1 + narrow) * (double)hlo_count(n) / 1024;
  t.stored = MAX(t.made, in + moved(law->product.o, n));
  t.repeated = MAX(t.made, in);
  add_products(&t, n, 0);
  return t.products > 1 && t.stored < t.repeated;
}
