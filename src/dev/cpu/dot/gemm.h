/* dev/cpu/gemm: c[m, n] = sum_k a[m, k] b[k, n] in f32, for operands with any strides.
 *
 * The scheme is that of Goto and van de Geijn (Anatomy of High-Performance Matrix Multiplication,
 * ACM TOMS 34, 2008): operands are copied into panels that the innermost kernel, mr rows by two
 * vectors of columns in registers, reads in order. The copy makes transposed operands as good as
 * straight ones and widens bf16 and f16 on the way.
 *
 * The operand with fewer elements is packed ahead, once, by all threads. Columns that are runs need
 * no time to be packed: the first panel of rows reads them where they are, and leaves them packed
 * for the others of a tile. Else, when what is packed ahead fits a core's cache, every task packs its
 * piece of the other one, in groups; when it does not, the other one is packed by all threads too,
 * some tiles' share at a time (a round), or many tasks would pack the same. A product is cut into
 * tiles by size only, and k into blocks that are added up in order: results do not depend on
 * threads. */
#ifndef WEFT_DEV_CPU_GEMM_H
#define WEFT_DEV_CPU_GEMM_H

#include "base/base.h"

/* Memory that will be read soon, asked for line by line while something else is multiplied: `count`
 * rows or columns as for gemm_pack, in about `calls` calls of gemm_ask. Nothing where neither step
 * is 1. Many at once would fill the queue of lines on their way, and the next loads wait. */
typedef struct GemmComing {
  const char *p; /* next line */
  int64_t line, lines, run, runs, stride;
  int64_t each; /* lines for each call */
} GemmComing;
GemmComing gemm_coming(DType t, const void *p, int64_t count, int64_t step, int64_t k,
                       int64_t k_step, int64_t calls);

static inline void gemm_ask(GemmComing *c) {
  for (int64_t i = 0; i < c->each && c->run < c->runs; i++) {
    __builtin_prefetch(c->p + c->line * 64, 0, 2);
    if (++c->line < c->lines) continue;
    c->line = 0;
    c->run++;
    c->p += c->stride;
  }
}

/* c[0 .. mr)[0 .. vectors) (+)= sum over k of a[k][mr] b[k][vectors]; every GEMM_ASK steps of k
 * calls gemm_ask. */
#define GEMM_ASK 4
typedef void (*GemmKernelFn)(int64_t k, const float *a, const float *b, float *c, int64_t ldc,
                             bool add, GemmComing *next);
/* The same for two vectors of columns that are elsewhere: rows of them begin at `from`, far bytes
 * apart; they are left packed at b. */
typedef void (*GemmTakeFn)(int64_t k, const float *a, const char *from, int64_t far, float *b,
                           float *c, int64_t ldc, bool add, GemmComing *next);
/* c[few][n] += a[few][k] b: few rows; b is read once, where it is. Rows of a, c are a_ld, c_ld
 * apart. along: b[p] is a run of n, b_step to the next; dots: b[.][j] is a run of k, or the
 * last k of one, that is no shorter than a vector; what is before may be read. asks: b comes from
 * beyond the second cache. */
typedef void (*GemmFewFn)(int64_t few, const float *a, int64_t a_ld, const void *b, int64_t b_step,
                          int64_t n, int64_t k, float *c, int64_t c_ld, bool asks);
/* c[mr][columns] (+)= sum over k of a b, both where they are: element (i, p) of a at i * a_row +
 * p * a_k, rows of b b_k apart. The columns may end within the last vector: what follows them is
 * not read, and written only before c_end (NULL: nothing is). */
typedef struct GemmAt {
  int64_t a_row, a_k, b_k, c_row;
  const float *c_end;
  bool asks; /* GemmShortFn: for the lines of as many rows more of results */
} GemmAt;
typedef void (*GemmPanelFn)(const GemmAt *at, int64_t k, const float *a, const float *b, float *c,
                            int64_t columns, bool add);
/* c[rows][columns] = a b for one k <= GEMM_SHORT_K: as GemmPanelFn, with any number of columns in
 * panels of two vectors, b_step from one to the next. */
#define GEMM_SHORT_K 8
typedef void (*GemmShortFn)(const GemmAt *at, int64_t b_step, const float *a, const float *b,
                            float *c, int64_t columns);
typedef struct GemmShort {
  int rows;
  int columns;          /* with no more of them others take less time */
  GemmShortFn one, all; /* a single row; `rows` of them */
} GemmShort;
/* For pairs of bf16: rows along a panel, two of k at a time, become floats of it (of gemm_pack_pairs:
 * step is 1, k even). Results become bf16 (as by gemm_narrow). */
typedef void (*GemmPairRowsFn)(const char *in, int64_t k_step, int w, int width, int64_t k,
                               int64_t panels, int64_t panel_step, float *out);
typedef void (*GemmNarrowFn)(const float *c, int64_t c_row, int64_t rows, int64_t columns,
                             uint16_t *out, int64_t out_row);
/* For quads of int8, before a panel of columns: what their sums begin with, as rows are moved by 128
 * where they are signed (flip). */
typedef void (*GemmHeadFn)(bool flip, int64_t width, int64_t k, float *panel);
#define GEMM_MAX_MR 12
typedef struct GemmKernels {
  int mr, lanes;
  int per;                                  /* elements of k that a float of a panel holds */
  GemmKernelFn fn[GEMM_MAX_MR][2];          /* [rows - 1][vectors - 1] */
  GemmKernelFn narrows[GEMM_MAX_MR][2];     /* fn to bf16: c and ldc are of that; NULL: none */
  DType takes;                              /* the type of columns for take[rows - 1] */
  GemmTakeFn take[GEMM_MAX_MR];             /* NULL: there are none; and */
  GemmTakeFn take_narrow[GEMM_MAX_MR];      /* to bf16, where there are `narrows` */
  GemmPanelFn panel[2][GEMM_MAX_MR];        /* [vectors - 1][rows - 1]; one vector: for any rows */
  GemmPanelFn narrow_panel[2][GEMM_MAX_MR]; /* of pairs, to bf16: c_end, add are of no use */
  GemmShort shorts[GEMM_SHORT_K];           /* [k - 1]; not for pairs */
  int few;                                  /* rows that go together in */
  GemmFewFn along[3], dots[3];              /* b in f32, bf16, f16 */
  GemmPairRowsFn pair_rows;                 /* NULL: gemm_pack.c's own */
  GemmNarrowFn narrow;
  GemmHeadFn head; /* NULL: sums begin with zero */
} GemmKernels;
extern const GemmKernels gemm_avx2, gemm_avx512;
/* For bf16 in pairs: a float of a packed panel holds elements 2 p and 2 p + 1 of k, and so do those of
 * both operands of dots[0]. Not along. */
extern const GemmKernels gemm_avx512_bf16;
/* For int8 in quads, rows of either sign times columns of signed ones to int32. Only fn, and dots[0]
 * of rows without a sign. */
extern const GemmKernels gemm_avx512_vnni;
/* For int16 in pairs to int32, which bytes become, on hosts with AVX2. Only fn, take. */
extern const GemmKernels gemm_avx2_int;

/* The widest that this host can run (cpu_vector_bits); NULL: none. */
const GemmKernels *gemm_kernels(void);
/* Those for pairs of bf16, on hosts with instructions for them (AVX512_BF16: products of bf16 are
 * added to f32 without being widened, denormals count as zero); NULL: others. */
const GemmKernels *gemm_pairs(void);
/* Those for quads of int8 (AVX512_VNNI); NULL: none. */
const GemmKernels *gemm_quads(void);

/* All of a, b and c f32; a and b both bf16 or f16, c that or f32; a and b integers of 8 bits or signed
 * ones of 16, c i32: modulo 2^32. */
typedef struct GemmTypes {
  DType a, b, c;
} GemmTypes;

typedef struct Gemm {
  const GemmKernels *kern;
  int64_t m, n, k;   /* k in floats of a packed panel */
  int64_t per, k_in; /* elements of k in one of them; k in elements */
  GemmTypes t;
  int64_t kc;               /* block of k */
  int64_t panels;           /* of rows: */
  int64_t thin, thick;      /* thin rows each, the first `thick` panels one more */
  int64_t near;             /* panels that stay in the second cache */
  bool a_ahead;             /* which side is packed ahead */
  bool both;                /* the other one is packed before its tiles */
  bool take;                /* a is packed ahead, columns of b are runs: read where they are */
  bool hurries;             /* few rows: columns are not asked for tile by tile */
  int64_t at_once;          /* pieces of the other side in a round */
  int64_t tile_m, tile_n;   /* panels, columns */
  int64_t tiles_m, tiles_n; /* tiles = tiles_m * tiles_n */
} Gemm;

/* Instead of a in memory: packs `panels` times `rows` rows from `row` on, elements [p0, p0 + k) of
 * each, k at most GEMM_MAX_K, to out[panel][k][rows]. */
#define GEMM_MAX_K 512
typedef void (*GemmGatherFn)(const void *of, int64_t row, int rows, int64_t panels, int64_t p0,
                             int64_t k, float *out);

typedef struct GemmArgs {
  const void *a, *b;                     /* element (i, p) of a at i * a_row + p * a_k, .. */
  int64_t a_row, a_k, b_col, b_k, c_row; /* elements */
  void *c;
  bool add;            /* to what c holds; f32 only */
  GemmGatherFn gather; /* NULL: a is in memory */
  /* Where row i of the results begins; NULL: at c + i * c_row. f32 only. */
  float *(*c_at)(const void *of, int64_t row);
  const void *of; /* for both */
} GemmArgs;

typedef enum GemmAhead { GEMM_SMALLER, GEMM_A, GEMM_B } GemmAhead; /* what is packed ahead */
/* batch: how many such products there are; with enough of them one is not cut. runs: b_col is 1. */
void gemm_plan(Gemm *g, int64_t m, int64_t n, int64_t k, GemmTypes t, int64_t batch,
               GemmAhead ahead, bool runs);
/* For the side packed ahead: memory, and the independent parts that it is packed in. */
int64_t gemm_ahead_floats(const Gemm *g);
int64_t gemm_ahead_parts(const Gemm *g);
void gemm_ahead(const Gemm *g, const GemmArgs *x, float *ahead, int64_t begin, int64_t end);
/* Round by round: the same for the other side (no memory and no parts where each task packs its
 * own), then tiles [round, round + 1) * gemm_round_tiles, as far as there are any. */
int64_t gemm_rounds(const Gemm *g);
int64_t gemm_other_floats(const Gemm *g);
int64_t gemm_other_parts(const Gemm *g, int64_t round);
void gemm_other(const Gemm *g, const GemmArgs *x, int64_t round, float *other, int64_t begin,
                int64_t end);
int64_t gemm_round_tiles(const Gemm *g);
int64_t gemm_scratch_floats(const Gemm *g); /* of a task */
void gemm_tile(const Gemm *g, const GemmArgs *x, const float *ahead, const float *other,
               int64_t tile, float *scratch);

/* All of it, on the pool. prepacked: memory for the side packed ahead, NULL: of our own; fresh: it is
 * not filled yet. false: no memory. */
bool gemm_run(const Gemm *g, const GemmArgs *x, float *prepacked, bool fresh);

/* A packed panel of `rows` rows times one of columns (one or two vectors of them, filled up with zeros),
 * of k; c_row: of `c`, whose element (0, 0) is theirs. */
void gemm_multiply(const GemmKernels *kern, int64_t rows, int64_t columns, int64_t k,
                   const float *a, const float *b, float *c, int64_t c_row, bool add,
                   GemmComing *next);

/* A product whose k is much longer than its sides, in f32 (gemm_long.c): the sum of `pieces` products
 * of k terms, a_piece and b_piece elements apart. */
typedef struct GemmLong {
  int64_t m, n, k, pieces;
  const float *a, *b; /* element (i, p) of a at i * a_row + p * a_k, .. */
  int64_t a_row, a_k, b_col, b_k, a_piece, b_piece; /* b_col: 1, or anything on a big core */
  /* Instead of a in memory, of one piece: elements [p, p + k) of rows [row, row + rows) to
   * out[k][pitch]. */
  void (*gather)(const void *of, int64_t row, int64_t rows, int64_t p, int64_t k, float *out,
                 int64_t pitch);
  const void *of;
  float *c; /* [m][n] */
} GemmLong;
bool gemm_long_run(const GemmLong *g); /* false: no memory */

/* Copies `panels` times w rows or columns, `step` elements apart, of k elements, k_step apart, to
 * out[panel][k][width], zero from w on, panels panel_step apart; one of the steps may be anything.
 * Nothing beyond the last panel is written. */
void gemm_pack(DType t, const void *in, int64_t step, int64_t k_step, int w, int width, int64_t k,
               int64_t panels, int64_t panel_step, float *out);
/* gemm_pack of f32 into panels of `rows` whole rows that follow one another; not all of them at a time:
 * their lines may be of one set of the first cache. */
void gemm_pack_rows(const float *in, int64_t step, int64_t k_step, int64_t rows, int64_t panels,
                    int64_t k, float *out);
/* gemm_pack of f32, k_step 1, on hosts with AVX-512; w > width - 16. */
void gemm_turn(const float *in, int64_t step, int w, int width, int64_t k, int64_t panels,
               int64_t panel_step, float *out);
/* out[rows][columns] in bf16 or f16 from c, rounded to nearest even; rows c_row and out_row apart. */
void gemm_narrow(DType t, const float *c, int64_t c_row, int64_t rows, int64_t columns, void *out,
                 int64_t out_row);
/* gemm_pack of 16 bits, k of them, to out[panel][(k + 1) / 2][width], the even one in the low half;
 * bytes are widened. */
void gemm_pack_pairs(const GemmKernels *kern, DType t, const void *in, int64_t step, int64_t k_step,
                     int w, int width, int64_t k, int64_t panels, int64_t panel_step, float *out);

/* gemm_pack of bytes, k of them, to out[panel][(k + 3) / 4][width], the first one in the low bits.
 * flip: each moved by 128. */
void gemm_pack_quads(bool flip, const void *in, int64_t step, int64_t k_step, int w, int width,
                     int64_t k, int64_t panels, int64_t panel_step, float *out);

#endif
