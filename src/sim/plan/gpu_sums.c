/* Sums that XLA for GPUs makes of several, each a kernel's own result: before anything is fused, so that what
 * joins a sum joins its first part.
 *
 * A block of threads sums up so many elements, and no two blocks write the same result: what is longer is cut
 * into pieces, about as many as each has elements, whose sums another kernel adds up. Dimensions that do not lie
 * beside each other are summed one after the other, the longest first. */
#include <math.h>

#include "sim/plan/gpu_expand.h"

#define ROW 16384   /* elements that a block sums along rows, */
#define COLUMN 4096 /* and along columns */
#define FEWEST 16   /* pieces: with fewer it is left as it is */
#define APART 8     /* a shorter dimension is summed with others wherever it lies */

static bool summed(const HNode *n, int dim) {
  for (int i = 0; i < n->n_dims; i++)
    if (n->dims[i] == dim) return true;
  return false;
}

/* A sum of in[0] along dimensions `dims`, of the same kind as n. */
static HNode *part(HGraph *g, const HNode *n, HNode *of, const int64_t *dims, int n_dims) {
  int64_t d[64];
  int rank = 0;
  for (int i = 0; i < of->rank; i++) {
    bool gone = false;
    for (int q = 0; q < n_dims; q++) gone |= dims[q] == i;
    if (!gone) d[rank++] = of->d[i];
  }
  HNode *in[2] = {of, n->in[1]};
  HNode *s = hlo_node(g, n->comp, H_REDUCE, n->op, n->src, n->dt, rank, d, 2, in);
  s->n_dims = n_dims;
  s->dims = hlo_ints(g, dims, n_dims);
  return s;
}

/* One after the other. */
static void split_apart(HGraph *g, HNode *n) {
  const HNode *x = n->in[0];
  int64_t longest = -1, rest[64];
  int runs = 0, last = -2, left = 0;
  for (int i = 0; i < x->rank; i++) {
    if (x->d[i] == 1 || !summed(n, i)) continue;
    bool beside = last >= 0;
    for (int q = last + 1; q < i && beside; q++) beside = x->d[q] == 1;
    runs += !beside;
    last = i;
    if (longest < 0 || x->d[i] > x->d[longest]) longest = i;
  }
  if (runs < 2 || x->d[longest] < APART) return;
  for (int i = 0; i < x->rank; i++)
    if (i != longest && summed(n, i)) rest[left++] = i - (i > longest);
  n->in[0] = part(g, n, n->in[0], &longest, 1);
  n->n_dims = left;
  n->dims = hlo_ints(g, rest, left);
}

/* How many pieces: a power of two if that divides it. */
static int64_t pieces(int64_t all) {
  int64_t most = (int64_t)sqrt((double)all), two = 1;
  while (two * 2 <= most && all % (two * 2) == 0) two *= 2;
  if (two >= FEWEST) return two;
  while (most > 1 && all % most) most--;
  return most;
}

/* What is summed as one dimension beside others: cut in two. */
static void split_long(HGraph *g, HNode *n) {
  HNode *x = n->in[0];
  int64_t all = 1, d[64], last = -1;
  int rank = 0, first = -1, minor = x->rank - 1;
  while (minor > 0 && x->d[minor] == 1) minor--;
  for (int i = 0; i < x->rank; i++)
    if (summed(n, i)) {
      all *= x->d[i];
      if (first < 0 && x->d[i] > 1) first = i;
      if (x->d[i] > 1) last = i;
    }
  if (x->rank > 60 || all <= (last == minor ? ROW : COLUMN)) return;
  int64_t count = pieces(all);
  if (count < FEWEST) return;
  for (int i = first; i <= last; i++)
    if (x->d[i] > 1 && !summed(n, i)) return;
  for (int i = 0; i < x->rank; i++) {
    if (i == first) d[rank++] = count, d[rank++] = all / count;
    else if (!summed(n, i)) d[rank++] = x->d[i];
  }
  int64_t outer = 0;
  for (int i = 0; i < first; i++) outer += !summed(n, i);
  int64_t inner = outer + 1;
  HNode *cut = hlo_node(g, n->comp, H_RESHAPE, OP_RESHAPE, n->src, x->dt, rank, d, 1, &x);
  n->in[0] = part(g, n, cut, &inner, 1);
  n->n_dims = 1;
  n->dims = hlo_ints(g, &outer, 1);
}

void gpu_split_sums(HGraph *g, HComp *c) {
  for (int i = 0, count = c->nodes.n; i < count; i++) {
    HNode *n = c->nodes.v[i];
    if (n->kind != H_REDUCE || n->dead || n->attention || n->n_results != 1 || n->n_in != 2 ||
        n->in[0]->rank > 64)
      continue;
    split_apart(g, n);
    if (n->in[0]->kind == H_REDUCE && n->in[0]->comp == c) split_long(g, n->in[0]);
    split_long(g, n);
  }
}
