/* dev/cpu/amx: products by AMX's tiles, bf16 to f32 or bf16 and int8 to int32, for operands with any
 * strides.
 *
 * A tile register holds 16 rows of 64 bytes. One instruction multiplies 16 rows of 64 bytes of a's k
 * with 64 bytes of k of 16 columns of b, whose groups of four bytes along k (two bf16, four int8) lie
 * side by side, a row for each group, and adds the 16 x 16 sums to a tile. Four tiles of sums, two of a,
 * two of b: a block of 32 x 32 results. That is so fast that all else must be little: a task (a
 * rectangle of results) has its columns of b in tiles in the second cache, for a block of k, and goes down the
 * rows of a by 32, and along them by few steps that stay in the first cache, made tiles too where they are no
 * runs, and multiplies them with all columns. What several tasks need is packed before all of them. Sums are
 * added in order. */
#ifndef WEFT_DEV_CPU_AMX_H
#define WEFT_DEV_CPU_AMX_H

#include "dev/cpu/dot/gemm.h"

#define AMX_SIDE 16      /* rows and columns of a tile of results, groups of a tile of b */
#define AMX_STEP 64      /* bytes of k in a tile */
#define AMX_SUMS_ROW 128 /* bytes of 32 sums */
#define AMX_TILE_B 1024  /* bytes of a tile */

/* c (+)= a b for one or two tiles of rows, by one or two of columns. Steps of k: a's are a_step bytes
 * apart, rows a_row; tile s of the columns' panel q is at b + q * b_panel + s * AMX_TILE_B. Rows of c
 * are c_row bytes apart. add: sums to begin with, rows AMX_SUMS_ROW apart; NULL: zeros. next: asked for meanwhile. */
typedef struct AmxBlock {
  int64_t steps;
  const char *a, *b;
  int64_t a_row, a_step, b_panel;
  char *c;
  int64_t c_row;
  const char *add;
  GemmComing *next;
} AmxBlock;

typedef struct AmxKernels {
  /* Of the calling thread, before blocks of so many rows (1 .. 32), and after all of them. */
  void (*begin)(int rows);
  void (*end)(void);
  void (*fn[2][2])(const AmxBlock *x); /* [tiles of rows - 1][of columns - 1] */
} AmxKernels;
/* For bf16, for bytes by whether a's and b's have a sign; NULL: the host has none. */
const AmxKernels *amx_bf16(void);
const AmxKernels *amx_bytes(bool a_signed, bool b_signed);

/* Operands that are not in memory, results that are not in rows a step apart. */
typedef struct AmxGather {
  /* Elements [at, at + n) of rows [row, row + rows) to out, pitch bytes apart. Rows are a's, of k, or b's
   * at each of k, of columns. NULL: that one is in memory. */
  void (*a)(const void *of, int64_t row, int64_t rows, int64_t at, int64_t n, char *out,
            int64_t pitch);
  void (*b)(const void *of, int64_t row, int64_t rows, int64_t at, int64_t n, char *out,
            int64_t pitch);
  char *(*c_at)(const void *of, int64_t row); /* NULL: as GemmArgs has it */
  const void *of;
} AmxGather;
/* Of a: to be turned, runs, by a gather. */
typedef enum AmxRows { AMX_TURNED, AMX_RUNS, AMX_GATHERED } AmxRows;

typedef struct Amx {
  const AmxKernels *kern;
  GemmTypes t;
  int64_t m, n, k;
  int64_t per, steps, block,
      near; /* elements in a group, steps of all of k, of a block of it, of a part of that */
  int64_t tile_m, tile_n, tiles_m, tiles_n;
  bool ahead_a, ahead_b; /* packed before all tasks, of which several need the same */
} Amx;
/* false: the host has no tiles for these types. batch: how many such products there are. */
bool amx_plan(Amx *g, int64_t m, int64_t n, int64_t k, GemmTypes t, int64_t batch, AmxRows rows);
int64_t amx_scratch_bytes(const Amx *g); /* of a task, aligned to 64 */
int64_t amx_ahead_bytes(const Amx *g);   /* of what is packed before all tasks, */
int64_t amx_ahead_parts(const Amx *g);   /* in parts [begin, end) of so many */
void amx_ahead(const Amx *g, const GemmArgs *x, char *ahead, int64_t begin, int64_t end);
/* Tile of tiles_m * tiles_n. x: as for gemm, without gather and c_at; gather: NULL is none. */
void amx_tile(const Amx *g, const GemmArgs *x, const AmxGather *gather, const char *ahead,
              int64_t tile, char *scratch);
void amx_release(const Amx *g); /* the thread has done its tiles */

int64_t amx_grain(const Amx *g); /* tiles that one thread does sooner than another is told */
/* All of it, on the pool. prepacked: memory for what is packed ahead, NULL: of our own; fresh: it is not filled
 * yet. false: no memory. */
bool amx_run(const Amx *g, const GemmArgs *x, const AmxGather *gather, char *prepacked, bool fresh);

/* w columns from `in` on, k elements of each, to panels of 16, [steps][16 groups][16 columns], so many
 * bytes apart. Zero where there is nothing. */
void amx_pack_columns(DType t, const void *in, int64_t step, int64_t k_step, int64_t w, int64_t k,
                      int64_t steps, int64_t panel_bytes, char *out);
/* Up to 32 rows, to [steps][32][64 bytes]; `turned`: room for a tile. Rows that are not there stay as they were. */
void amx_pack_rows(DType t, const void *in, int64_t step, int64_t k_step, int64_t rows, int64_t k,
                   int64_t steps, char *out, char *turned);

#endif
