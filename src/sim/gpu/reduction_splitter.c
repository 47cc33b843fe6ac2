/* Sums that XLA for GPUs makes of several, each a kernel's own result: before anything is fused, so that what
 * joins a sum joins its first part.
 *
 * A block of threads sums up so many elements, and no two blocks write the same result: what is longer is cut
 * into pieces, about as many as each has elements and perhaps longer than it is, whose sums another kernel adds
 * up. Dimensions that do not lie beside each other are summed one after the other, the longest first. */
#include <math.h>

#include "sim/gpu/rewrite.h"

#define ROW 16384   /* elements that a block sums along rows, */
#define COLUMN 4096 /* and along columns */
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

/* Of a sum: so many pieces of so many elements each, perhaps more than there are. */
typedef struct Cut {
  int64_t pieces, each;
} Cut;

/* As near to the square root as leaves least over, a power of two if that does as well. There are fewer pieces
 * than each has elements, unless a block could not sum up so many or, along rows, could not read them in pairs. */
static Cut cut_of(int64_t all, bool row) {
  int64_t most = MIN((int64_t)sqrt((double)all), row ? ROW : COLUMN), few = most;
  int64_t least = (most - all % most) % most;
  for (int64_t k = most - 1; k > most / 2; k--) {
    int64_t over = (k - all % k) % k;
    if (over < least || (over == least && (k & (k - 1)) == 0)) few = k, least = over;
  }
  int64_t many = (all + least) / few;
  bool pairs = few % 2 == 0 && all % 2 == 0;
  bool swaps = pairs ? few * 2 < many || many % 2 == 0 : all % 2 == 0 || many % 2 == 1;
  if (many > (row ? ROW : COLUMN) || (row && !swaps)) return (Cut){many, few};
  return (Cut){few, many};
}

/* What n sums up, with the dimensions of that as `to`, beside those that stay. */
static HNode *reshaped(HGraph *g, const HNode *n, HNode *x, int first, const int64_t *to,
                       int n_to) {
  int64_t d[64];
  int rank = 0;
  for (int i = 0; i < n->in[0]->rank; i++) {
    for (int q = 0; q < n_to && i == first; q++) d[rank++] = to[q];
    if (!summed(n, i)) d[rank++] = n->in[0]->d[i];
  }
  return hlo_node(g, n->comp, H_RESHAPE, OP_RESHAPE, n->src, x->dt, rank, d, 1, &x);
}

/* Its dimension i, with `more` elements behind that add nothing. */
static HNode *lengthened(HGraph *g, const HNode *n, HNode *x, int64_t dim, int64_t more) {
  int64_t d[64], none[64] = {0}, hi[64] = {0};
  for (int i = 0; i < x->rank; i++) d[i] = x->d[i];
  d[dim] += more;
  hi[dim] = more;
  HNode *in[2] = {x, n->in[1]};
  HNode *w = hlo_node(g, n->comp, H_PAD, OP_PAD, n->src, x->dt, x->rank, d, 2, in);
  w->lo = hlo_ints(g, none, x->rank);
  w->hi = hlo_ints(g, hi, x->rank);
  w->step = hlo_ints(g, none, x->rank);
  return w;
}

/* What is summed as one dimension beside others: cut in two. */
static void split_long(HGraph *g, HNode *n) {
  HNode *x = n->in[0];
  int64_t all = 1, outer = 0;
  int first = -1, last = -1, minor = x->rank - 1;
  while (minor > 0 && x->d[minor] == 1) minor--;
  for (int i = 0; i < x->rank; i++) {
    if (!summed(n, i) || x->d[i] == 1) continue;
    all *= x->d[i];
    if (first < 0) first = i;
    last = i;
  }
  bool row = last == minor;
  if (x->rank > 60 || all <= (row ? ROW : COLUMN)) return;
  for (int i = first; i <= last; i++)
    if (x->d[i] > 1 && !summed(n, i)) return;
  for (int i = 0; i < first; i++) outer += !summed(n, i);
  Cut cut = cut_of(all, row);
  int64_t more = cut.pieces * cut.each - all, inner = outer + 1;
  if (more) x = lengthened(g, n, reshaped(g, n, x, first, &all, 1), outer, more);
  x = reshaped(g, n, x, first, (int64_t[]){cut.pieces, cut.each}, 2);
  n->in[0] = part(g, n, x, &inner, 1);
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
