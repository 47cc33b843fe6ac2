/* The systolic array, element by element and cycle by cycle.
 *
 * Weight-stationary (the TPU): element (r, c) holds B[k0+r][n0+c]; activations enter from the left,
 * row r one cycle after row r-1, and move right; partial sums move down; results leave at the
 * bottom. With double buffering the next tile's weights march in behind the current ones, each
 * activation carries which of the two weights it wants, and the stream never pauses as long as M >=
 * rows. Output-stationary: element (r, c) accumulates C[m0+r][n0+c]; A enters from the left, B from
 * the top, results shift out downwards. Cost of the simulation: cycles x rows x cols element
 * updates. */
#include <stdlib.h>

#include "sim/sim.h"

static int64_t cdiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t systolic_scalesim_cycles(SystolicFlow flow, int rows, int cols, int64_t m, int64_t n,
                                 int64_t k) {
  /* What SCALE-Sim 3.0.0 prints, found from its runs (tools/systolic_peer.py): one fold after another,
   * the weights loaded before each; output-stationary results vanish without being shifted out. It
   * prints the number of the last cycle, counted from 0. */
  if (flow == SYSTOLIC_WS)
    return (2 * (int64_t)rows + cols + m - 2) * cdiv(k, rows) * cdiv(n, cols) - 1;
  return ((int64_t)rows + cols + k - 2) * cdiv(m, rows) * cdiv(n, cols) - 1;
}

int64_t systolic_cycles(SystolicFlow flow, int rows, int cols, int64_t m, int64_t n, int64_t k,
                        bool db) {
  int64_t R = rows, C = cols;
  if (flow == SYSTOLIC_WS) {
    int64_t folds = cdiv(k, R) * cdiv(n, C);
    if (!db) return folds * (2 * R + C + m - 2);
    return R + (folds - 1) * MAX(m, R) + m + R + C - 2;
  }
  int64_t folds = cdiv(m, R) * cdiv(n, C);
  if (!db) return folds * (2 * R + C + k - 2);
  return (folds - 1) * MAX(k, R) + k + 2 * R + C - 2;
}

typedef struct Elem {
  float x;       /* activation passing through */
  float psum;    /* partial sum leaving downwards (WS) or the accumulator (OS) */
  float w[2];    /* weights of even and odd folds (WS); B value passing through in w[0] (OS) */
  int32_t fold;  /* of the activation; -1: a bubble */
  int32_t pfold; /* of the partial sum */
} Elem;

static Err *check(int rows, int cols, int64_t m, int64_t n, int64_t k) {
  int64_t v;
  if (rows < 1 || cols < 1 || rows > 4096 || cols > 4096)
    return err_new(ERR_INVALID, "an array of %d x %d elements; both sides must be 1 to 4096", rows,
                   cols);
  if (m < 1 || n < 1 || k < 1) return err_new(ERR_INVALID, "M, N and K must be at least 1");
  if (mul_overflows(m, n, &v) || mul_overflows(v, k, &v) || v > ((int64_t)1 << 50))
    return err_hint(err_new(ERR_INVALID, "%lld x %lld x %lld is too large: more than 2^50 products",
                            (long long)m, (long long)n, (long long)k),
                    "smaller sizes: past a few tiles the utilisation hardly changes");
  return NULL;
}

/* The stream of a tile that fills r x c elements, len values long, has its first and its last cycle
 * in which as many of them work as ever do: all when it is long enough. The first, counted from the
 * stream's beginning; the last lies as far before its end. */
static int64_t ramp(int64_t r, int64_t c, int64_t len) {
  return MIN(r + c - 2, MIN(MIN(r, c) + len - 2, (r + c + len - 3) / 2));
}

/* Fill until the first tile works at its fullest, drain after the last one does for the last time.
 * Steady is all between: also tiles that fill only part of the array, and gaps between tiles. */
static void finish(SystolicRun *o, int64_t depth, int64_t n, int64_t begin, int64_t last_begin,
                   int64_t len) {
  int64_t r = (depth - 1) % o->rows + 1, c = (n - 1) % o->cols + 1; /* of the last tile */
  o->fill = begin + ramp(MIN(o->rows, depth), MIN(o->cols, n), len);
  int64_t end = last_begin + r + c + len - 2 - ramp(r, c, len);
  o->steady = end - o->fill;
  o->drain = o->cycles - end;
  o->utilisation = (double)o->macs / ((double)o->cycles * o->rows * o->cols);
}

static Err *run_ws(int R, int C, int64_t M, int64_t N, int64_t K, const float *a, const float *b,
                   bool db, SystolicRun *o) {
  int64_t fk = cdiv(K, R), fn = cdiv(N, C), folds = fk * fn;
  o->folds = folds;
  int64_t total = systolic_cycles(SYSTOLIC_WS, R, C, M, N, K, db);
  int64_t work;
  if (mul_overflows(total, (int64_t)R * C, &work) || work > ((int64_t)1 << 38) ||
      folds > INT32_MAX / 2)
    return err_hint(err_new(ERR_EXHAUSTED,
                            "%lld cycles of %d elements are too many to simulate one by one",
                            (long long)total, R * C),
                    "ask for the counts alone, without numbers or a drawing");
  Elem *e = xcalloc((size_t)R * (size_t)C, sizeof *e);
  for (int i = 0; i < R * C; i++) e[i].fold = e[i].pfold = -1;
  int64_t *start = xmalloc(sizeof *start * (size_t)folds);
  for (int64_t f = 0; f < folds; f++)
    start[f] = f == 0 ? R : db ? start[f - 1] + MAX(M, R) : start[f - 1] + M + 2 * R + C - 2;
  o->cycles = total;
  o->load = db ? R + (folds - 1) * MAX(0, R - M) : folds * R;
  o->active = xcalloc((size_t)total + 1, sizeof *o->active);
  o->n_active = total;
  if (a && b) o->result = xcalloc((size_t)(M * N), sizeof(float));
  int64_t loaded = 0; /* folds whose weights have started marching in */
  int64_t head = 0;   /* oldest fold that may still enter at some row */
  for (int64_t t = 0; t < total; t++) {
    /* weights: fold f marches in during the R cycles before its stream; its set is the one its
     * predecessor's predecessor has left. Modelled as written when element (0,0) is about to need
     * them, wave by wave. */
    while (loaded < folds && t >= start[loaded] - R) loaded++;
    while (head < folds && t >= start[head] + M + R) head++;
    int64_t act = 0;
    for (int r = R - 1; r >= 0; r--) {
      Elem *row = e + (size_t)r * (size_t)C;
      for (int c = C - 1; c >= 0; c--) {
        /* take the neighbours' values of the last cycle; going from bottom right to top left, they
         * are still there */
        float x;
        int32_t fold;
        if (c > 0) {
          x = row[c - 1].x;
          fold = row[c - 1].fold;
        } else {
          x = 0;
          fold = -1;
          for (int64_t f = head; f < folds && t - r >= start[f]; f++) {
            int64_t i = t - r - start[f];
            if (i < M) {
              int64_t kk = (f % fk) * R + r;
              fold = (int32_t)f;
              x = a && kk < K ? a[i * K + kk] : 0;
              break;
            }
          }
        }
        float above = r > 0 ? e[(size_t)(r - 1) * (size_t)C + (size_t)c].psum : 0;
        Elem *p = &row[c];
        p->x = x;
        p->fold = fold;
        if (fold < 0) {
          p->psum = above;
          continue;
        }
        int64_t kk = (fold % fk) * R + r, nn = (fold / fk) * C + c;
        if (kk < K && nn < N) {
          act++;
          float w = b ? b[kk * N + nn] : 0;
          p->w[fold & 1] = w;
          p->psum = above + x * w;
        } else {
          p->psum = above;
        }
        if (r == R - 1 && o->result &&
            nn < N) { /* leaves the array: row index from the time it entered */
          int64_t i = t - (R - 1) - c - start[fold];
          if (i >= 0 && i < M) o->result[i * N + nn] += p->psum;
        }
      }
    }
    o->active[t] = act;
    o->macs += act;
  }
  finish(o, K, N, start[0], start[folds - 1], M);
  free(start);
  free(e);
  return NULL;
}

static Err *run_os(int R, int C, int64_t M, int64_t N, int64_t K, const float *a, const float *b,
                   bool db, SystolicRun *o) {
  int64_t fm = cdiv(M, R), fn = cdiv(N, C), folds = fm * fn;
  o->folds = folds;
  int64_t total = systolic_cycles(SYSTOLIC_OS, R, C, M, N, K, db), work;
  if (mul_overflows(total, (int64_t)R * C, &work) || work > ((int64_t)1 << 38) ||
      folds > INT32_MAX / 2)
    return err_hint(err_new(ERR_EXHAUSTED,
                            "%lld cycles of %d elements are too many to simulate one by one",
                            (long long)total, R * C),
                    "ask for the counts alone, without numbers or a drawing");
  float *x = xcalloc((size_t)R * (size_t)C, sizeof *x),
        *y = xcalloc((size_t)R * (size_t)C, sizeof *y);
  float *acc = xcalloc((size_t)R * (size_t)C, sizeof *acc);
  int32_t *fx = xmalloc(sizeof *fx * (size_t)R * (size_t)C);
  for (int i = 0; i < R * C; i++) fx[i] = -1;
  int64_t *start = xmalloc(sizeof *start * (size_t)folds);
  for (int64_t f = 0; f < folds; f++)
    start[f] = f == 0 ? 0 : db ? start[f - 1] + MAX(K, R) : start[f - 1] + K + 2 * R + C - 2;
  o->cycles = total;
  o->load = db ? R : folds * R; /* shifting results out */
  o->active = xcalloc((size_t)total + 1, sizeof *o->active);
  o->n_active = total;
  if (a && b) o->result = xcalloc((size_t)(M * N), sizeof(float));
  int64_t head = 0;
  for (int64_t t = 0; t < total; t++) {
    while (head < folds && t >= start[head] + K + R + C) head++;
    int64_t act = 0;
    for (int r = R - 1; r >= 0; r--)
      for (int c = C - 1; c >= 0; c--) {
        size_t i = (size_t)r * (size_t)C + (size_t)c;
        float ax, by;
        int32_t fold;
        if (c > 0) {
          ax = x[i - 1];
          fold = fx[i - 1];
        } else {
          ax = 0;
          fold = -1;
          for (int64_t f = head; f < folds && t - r >= start[f]; f++) {
            int64_t kk = t - r - start[f];
            if (kk < K) {
              int64_t mm = (f % fm) * R + r;
              fold = (int32_t)f;
              ax = a && mm < M ? a[mm * K + kk] : 0;
              break;
            }
          }
        }
        if (r > 0) {
          by = y[i - (size_t)C];
        } else {
          by = 0;
          for (int64_t f = head; f < folds && t - c >= start[f]; f++) {
            int64_t kk = t - c - start[f];
            if (kk < K) {
              int64_t nn = (f / fm) * C + c;
              by = b && nn < N ? b[kk * N + nn] : 0;
              break;
            }
          }
        }
        x[i] = ax;
        y[i] = by;
        fx[i] = fold;
        if (fold < 0) continue;
        int64_t mm = (fold % fm) * R + r, nn = (fold / fm) * C + c, kk = t - r - c - start[fold];
        if (kk == 0) acc[i] = 0;
        if (mm < M && nn < N) {
          act++;
          acc[i] += ax * by;
          if (kk == K - 1 && o->result) o->result[mm * N + nn] = acc[i];
        }
      }
    o->active[t] = act;
    o->macs += act;
  }
  free(x);
  free(y);
  free(acc);
  free(fx);
  finish(o, M, N, start[0], start[folds - 1], K);
  free(start);
  return NULL;
}

/* The counts alone: in each fold, element (r, c) is busy from start + r + c for as long as the
 * stream is. */
static Err *count_run(SystolicFlow flow, int64_t R, int64_t C, int64_t M, int64_t N, int64_t K,
                      bool db, SystolicRun *o) {
  bool ws = flow == SYSTOLIC_WS;
  int64_t f1 = ws ? cdiv(K, R) : cdiv(M, R), fn = cdiv(N, C), len = ws ? M : K, depth = ws ? K : M;
  o->folds = f1 * fn;
  o->cycles = systolic_cycles(flow, (int)R, (int)C, M, N, K, db);
  int64_t space, work;
  if (mul_overflows(o->folds, R + C, &work) || work > (int64_t)1 << 33 ||
      o->cycles > (int64_t)1 << 28 || mul_overflows(o->cycles + 1, 8, &space))
    return err_hint(
        err_new(ERR_EXHAUSTED, "%lld cycles are too many to follow", (long long)o->cycles),
        "ask for the counts alone, without numbers or a drawing");
  o->counted = true;
  o->load = ws ? (db ? R + (o->folds - 1) * MAX(0, R - M) : o->folds * R) : (db ? R : o->folds * R);
  o->n_active = o->cycles;
  o->active = xcalloc((size_t)o->cycles + 1, sizeof *o->active);
  int64_t begin = ws ? R : 0, start = begin, last = begin, busy = 0;
  for (int64_t f = 0; f < o->folds; f++) {
    int64_t r = MIN(R, depth - f % f1 * R), c = MIN(C, N - f / f1 * C);
    for (int64_t s = 0; s < r + c - 1; s++) {
      int64_t diagonal = MIN(MIN(s + 1, r + c - 1 - s), MIN(r, c));
      o->active[start + s] += diagonal;
      if (start + s + len <= o->cycles) o->active[start + s + len] -= diagonal;
    }
    o->macs += r * c * len;
    last = start;
    start += db ? MAX(len, R) : len + 2 * R + C - 2;
  }
  for (int64_t t = 0; t < o->cycles; t++) o->active[t] = busy += o->active[t];
  finish(o, depth, N, begin, last, len);
  return NULL;
}

Err *systolic_run(SystolicFlow flow, int rows, int cols, int64_t m, int64_t n, int64_t k,
                  const float *a, const float *b, bool double_buffer, SystolicRun *out) {
  TRY(check(rows, cols, m, n, k));
  memset(out, 0, sizeof *out);
  out->rows = rows;
  out->cols = cols;
  double work = (double)systolic_cycles(flow, rows, cols, m, n, k, double_buffer) * rows * cols;
  Err *e = !(a && b) && work > SYSTOLIC_WALK
               ? count_run(flow, rows, cols, m, n, k, double_buffer, out)
           : flow == SYSTOLIC_WS ? run_ws(rows, cols, m, n, k, a, b, double_buffer, out)
                                 : run_os(rows, cols, m, n, k, a, b, double_buffer, out);
  if (e) systolic_free(out);
  return e;
}

void systolic_free(SystolicRun *r) {
  free(r->result);
  free(r->active);
  r->result = NULL;
  r->active = NULL;
}
