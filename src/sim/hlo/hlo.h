/* hlo: the simulator's own view of a program. A StableHLO module becomes a graph of nodes in which
 * calls are inlined, constants are splats where they can be, broadcasts are composed, equal nodes
 * are one, and dot and convolution share one description. Passes only add marks to nodes; nothing
 * here is printed back as a program.
 *
 * Everything lives in the arena of the HGraph. Private to src/sim.
 */
#ifndef WEFT_SIM_HLO_H
#define WEFT_SIM_HLO_H

#include "ir/ir.h"

typedef enum HKind {
  H_PARAM, /* index */
  H_CONST, /* splat: value; else data of its own */
  H_IOTA,
  H_EWISE, /* op says which */
  H_BCAST, /* dims[i]: output dimension of operand dimension i */
  H_RESHAPE,
  H_TRANSPOSE, /* dims = permutation */
  H_SLICE,     /* start/limit/stride in lo, hi, step */
  H_PAD,       /* lo, hi, step (interior) */
  H_REVERSE,
  H_CONCAT,
  H_REDUCE,  /* dims = reduced dimensions; in[0..n/2) operands */
  H_CONV,    /* dot_general and convolution: conv */
  H_RWIN,    /* reduce_window; lo = window, step = stride; NULL: ones */
  H_SELSCAT, /* the same */
  H_GATHER,
  H_SCATTER,
  H_DSLICE,
  H_DUS,
  H_SORT,
  H_RNG,
  H_WHILE,   /* comps[0] condition, comps[1] body, trip */
  H_COND,    /* comps = branches */
  H_COLL,    /* collective */
  H_OTHER,   /* anything else: fft, cholesky, custom_call, infeed ... */
  H_BARRIER, /* in[0] as it is, but only when all of `after` is there: nothing is fused across */
  H_GET      /* result `index` of in[0] */
} HKind;

typedef struct HNode HNode;
typedef struct HComp HComp;

/* A product: out[b, m, n] = sum over k and taps. Sizes are products over dimensions. */
typedef struct HConv {
  int64_t batch, m, n,
      k; /* m: from lhs (batch x output pixels for a convolution), k: input features of one tap */
  int64_t taps;   /* window positions */
  int64_t groups; /* feature groups; batch groups */
  bool is_conv;
  bool cut_to_one; /* a batch of which each device has one: a reshape lies behind the product */
  int passes;      /* 1, 3, 6: bf16 passes that the precision asks for */
  /* roles of dimensions: 'b' batch, 'm', 'n', 'k' contracted, 's' spatial */
  const char *lhs, *rhs, *out;
  int64_t *window, *stride, *lhs_dil, *rhs_dil; /* per spatial dimension */
  int n_spatial;
  bool
      groups_apart; /* the last spatial dimension is of groups, each with one result: holes lie between */
  int64_t flops; /* useful floating-point operations */
} HConv;

struct HNode {
  int id;
  int visit; /* stamp of the last walk that came by */
  HKind kind;
  OpKind op;
  const Op *src; /* where it came from; NULL for made-up nodes */
  DType dt;
  int rank;
  int64_t *d;
  int n_in;
  HNode **in;
  int index;
  int n_dims;
  int64_t *dims;
  int64_t *lo, *hi,
      *step; /* SLICE, PAD: rank entries; RWIN, SELSCAT: window in lo, stride in step */
  bool splat;
  double value;
  HConv *conv;
  HComp **comps;
  int n_comps;
  HNode *
      *repeats;  /* WHILE: by state, what repeats it for its readers, or NULL; may be NULL itself */
  int64_t trip;  /* WHILE: -1 unknown */
  int n_results; /* results of a multi-result node (WHILE, SORT ...); 1 otherwise */
  DType *res_dt; /* types of the results when n_results > 1 */
  int *res_rank;
  int64_t **res_d;
  HComp *comp;   /* the computation it belongs to */
  HNode **after; /* BARRIER */
  int n_after;
  int n_users;
  HNode **users;
  bool is_output; /* returned by its computation */
  bool host;      /* lies in the host's memory (memory kinds: pinned_host) */
  bool crosses;   /* a copy between that and the device's */
  bool dead;
  bool soft;     /* part of a softmax that stays in the kernel of its product */
  bool apart;    /* stored although its readers could compute it */
  bool part;     /* of an image in parts: lies as what it is made of */
  bool joined;   /* put together inside the product that reads it */
  int rows;      /* 1 + the dimension that lies in sublanes, features in lanes; 0: any */
  int *lies;     /* the order that it lies in, or NULL; */
  bool view;     /* a reshape: so that it is the memory of what it reads, */
  bool copies;   /* or a copy of it, */
  bool turned;   /* with another dimension in lanes */
  bool ends;     /* the result of an operation of a framework that runs one at a time */
  bool inlined;  /* a reduction computed inside its reader: a softmax in one kernel */
  int attention; /* number of the attention inside which it is computed; 0: none */
  bool scores;   /* that attention's scores */
  /* marks of the device's compiler */
  struct HValue *val; /* set when the node is stored in memory */
  int kernel;         /* index of the kernel that computes it, -1 */
  double together;    /* a collective: bytes of all that it is combined with; 0: not known yet */
  int company;        /* 1 + the number of the first of them */
};

struct HComp {
  HComp *parent;
  HNode *owner;       /* the WHILE or COND, NULL for main */
  VEC(HNode *) nodes; /* in program order = a topological order */
  VEC(HNode *) params;
  VEC(HNode *) outputs;
  HComp *next; /* of all computations of the graph */
};

typedef struct HGraph {
  Arena *arena;
  const Module *module;
  HComp *main;
  int n_nodes;
  int n_params;
  const char **param_names; /* "params['w']" from jax.arg_info or "arg3" */
  const bool *donated;      /* jax.buffer_donor or tf.aliasing_output */
  int n_calls, depth;
  bool scatters; /* what is scattered into rows stays that, see hlo_one_per_row */
  HComp *comps;  /* all computations, for hlo_free */
  double busy_s; /* of a GPU: what all products take at its peak, once that was asked for */
} HGraph;

/* Builds and simplifies. The graph borrows the module, which must outlive it. */
Err *hlo_build(const Module *m, Arena *arena, bool scatters,
               HGraph **out); /* *out is set even on failure, NULL when nothing was built */
void hlo_free(HGraph *g);     /* its lists; the rest is in the arena */

int64_t hlo_count(const HNode *n); /* elements */
double hlo_bits(DType t);          /* 8 for i1: a predicate takes a byte */
static inline double hlo_bytes(const HNode *n) {
  return (double)hlo_count(n) * hlo_bits(n->dt) / 8;
}
HNode *hlo_node(HGraph *g, HComp *c, HKind kind, OpKind op, const Op *src, DType dt, int rank,
                const int64_t *d, int n_in, HNode *const *in);
HNode *hlo_copy(HGraph *g, HComp *c, const HNode *n); /* into c, reading the same */
HNode *hlo_result(const HNode *loop, int k);          /* of its state, or NULL */
void hlo_retype(HNode *loop, int k, HNode *init);     /* state k starts from it, and has its type */
void hlo_users(HGraph *g, HComp *c); /* fills users, n_users; marks dead nodes; recursive */
static inline bool hlo_light(const HNode *n) { /* can be computed inside its consumers */
  return n->kind == H_EWISE || n->kind == H_BCAST || n->kind == H_RESHAPE ||
         n->kind == H_TRANSPOSE || n->kind == H_SLICE || n->kind == H_PAD || n->kind == H_REVERSE ||
         n->kind == H_IOTA || n->kind == H_CONST || n->kind == H_DSLICE || n->kind == H_BARRIER;
}
/* Operands before what reads them, the first one's first; the list grows. */
void hlo_in_order(HNode *root, unsigned char *mark, HComp *c, HNode ***list, int *n, int *cap);
void hlo_sort(const HGraph *g,
              HComp *c); /* nodes that were made late stand where they are needed */
void hlo_dump(const HGraph *g, const HComp *c, int indent, Buf *out);

/* make.c: nodes as the walk makes them */
typedef struct Maker {
  HGraph *g;
  Map *cse;
  Map *said; /* repeat.c */
  HComp *comp;
} Maker;
int64_t *hlo_ints(HGraph *g, const int64_t *v, int n);
HNode *hlo_unique(Maker *b, HNode *n);
HNode *hlo_const(Maker *b, const Op *src, DType dt, int rank, const int64_t *d, double v);
bool hlo_same_shape(const HNode *a, int rank, const int64_t *d);
HNode *hlo_bcast(Maker *b, const Op *src, HNode *x, int rank, const int64_t *d, const int64_t *map);
HNode *hlo_reshape(Maker *b, const Op *src, HNode *x, int rank, const int64_t *d);
HNode *hlo_slice(Maker *b, const Op *src, HNode *x, const int64_t *d, const int64_t *lo,
                 const int64_t *hi, const int64_t *step);
HNode *hlo_transpose(Maker *b, const Op *src, HNode *x, const int64_t *perm);
HNode *hlo_ewise(Maker *b, OpKind op, const Op *src, DType dt, int rank, const int64_t *d, int n_in,
                 HNode **in);
HNode *hlo_one_per_row(Maker *b, const Op *scatter, int rank, const int64_t *d, DType dt,
                       HNode **in);       /* as a select, or NULL */
bool hlo_takes_numbers(const Op *gather); /* single ones, out of an array of two sides or more */
HNode *hlo_row_offsets(Maker *b, const Op *gather, HNode *indices);

/* repeat.c */
HNode *hlo_said_before(Maker *b, const Op *op, HNode *const *in); /* its equal, or NULL */
void hlo_say(Maker *b, const Op *op, HNode *const *in, HNode *result);
HNode *hlo_known_place(Maker *b, const Op *gather, HNode *const *in, int rank, const int64_t *d);

/* narrow.c */
void hlo_narrow(HGraph *g); /* loop state that is only ever rounded becomes bf16 */
void hlo_narrow_sums(HComp *c);

/* product.c */
HConv *hlo_dot_info(Maker *b, const Op *op, HNode *x, HNode *y);
HConv *hlo_conv_info(Maker *b, const Op *op, HNode *x, HNode *y);
HNode *hlo_outer_product(Maker *b, const Op *op, const HConv *c, HNode *x,
                         HNode *y); /* a product that contracts nothing, or NULL */

#endif
