/* Many small matrices, one in each lane of a vector: element (i, j) of all of them is one vector, so
 * every step is a step for all, without a call for each matrix. */
#include "dev/cpu/ops/small_linalg.h"

#include <math.h>

#include "dev/cpu/kernel/clones.h"

#define MOST 32  /* rows and columns */
#define FEWEST 4 /* matrices */
#define BYTES 64 /* of a vector: element (i, j) of all lanes */

bool small_suits(DType t, int64_t batch, int64_t rows, int64_t cols) {
  return (t == DT_F32 || t == DT_F64) && batch >= FEWEST && rows <= MOST && cols <= 2 * MOST;
}

typedef struct Job {
  int64_t batch, rows, cols;
  bool lower;
  const void *in;
  void *out;
  int32_t *pivots, *info;
  int64_t reflectors;
  void *tau;
  const SmallSolve *solve;
} Job;

/* Functions on groups of lanes. take, give: `count` elements of each of `n` matrices; lanes beyond
 * them hold the last. */
#define FUNCTIONS(T, N, SQRT, ABS)                                                                      \
  enum { LANES_##N = BYTES / sizeof(T) };                                                               \
  typedef T V_##N __attribute__((vector_size(BYTES), may_alias));                                       \
                                                                                                        \
  static void take_##N(const T *in, int64_t count, int64_t n, V_##N *to) {                              \
    for (int64_t e = 0; e < count; e++)                                                                 \
      for (int64_t l = 0; l < LANES_##N; l++) to[e][l] = in[MIN(l, n - 1) * count + e];                 \
  }                                                                                                     \
  static void give_##N(const V_##N *from, int64_t count, int64_t n, T *out) {                           \
    for (int64_t l = 0; l < n; l++)                                                                     \
      for (int64_t e = 0; e < count; e++) out[l * count + e] = from[e][l];                              \
  }                                                                                                     \
                                                                                                        \
  /* element (i, j), i >= j, at a[i * down + j * right] */                                              \
  CLONES static void cholesky_##N(V_##N *a, int64_t n, int64_t down, int64_t right) {                   \
    bool bad[LANES_##N] = {false};                                                                      \
    for (int64_t j = 0; j < n; j++) {                                                                   \
      V_##N d = a[j * down + j * right];                                                                \
      for (int64_t k = 0; k < j; k++) d -= a[j * down + k * right] * a[j * down + k * right];           \
      for (int64_t l = 0; l < LANES_##N; l++) {                                                         \
        bad[l] |= d[l] <= 0;                                                                            \
        d[l] = bad[l] ? 1 : SQRT(d[l]);                                                                 \
      }                                                                                                 \
      a[j * down + j * right] = d;                                                                      \
      for (int64_t i = j + 1; i < n; i++) {                                                             \
        V_##N x = a[i * down + j * right];                                                              \
        for (int64_t k = 0; k < j; k++) x -= a[i * down + k * right] * a[j * down + k * right];         \
        a[i * down + j * right] = x / d;                                                                \
        a[j * down + i * right] = (V_##N){0};                                                           \
      }                                                                                                 \
    }                                                                                                   \
    for (int64_t l = 0; l < LANES_##N; l++)                                                             \
      for (int64_t i = 0; bad[l] && i < n; i++)                                                         \
        for (int64_t j = 0; j <= i; j++) a[i * down + j * right][l] = NAN;                              \
  }                                                                                                     \
  static void cholesky_groups_##N(void *arg, int64_t begin, int64_t end) {                              \
    const Job *q = arg;                                                                                 \
    int64_t n = q->rows, size = n * n;                                                                  \
    V_##N *a = cpu_scratch((size_t)size * BYTES);                                                       \
    for (int64_t g = begin * LANES_##N; g < MIN(q->batch, end * LANES_##N); g += LANES_##N) {           \
      int64_t some = MIN(LANES_##N, q->batch - g);                                                      \
      take_##N((const T *)q->in + g * size, size, some, a);                                             \
      cholesky_##N(a, n, q->lower ? n : 1, q->lower ? 1 : n);                                           \
      give_##N(a, size, some, (T *)q->out + g * size);                                                  \
    }                                                                                                   \
  }                                                                                                     \
                                                                                                        \
  static void swap_rows_##N(V_##N *a, int64_t n, int64_t i, int64_t k, int64_t l) {                     \
    for (int64_t j = 0; j < n; j++) {                                                                   \
      T x = a[i * n + j][l];                                                                            \
      a[i * n + j][l] = a[k * n + j][l];                                                                \
      a[k * n + j][l] = x;                                                                              \
    }                                                                                                   \
  }                                                                                                     \
  CLONES static void lu_##N(V_##N *a, int64_t m, int64_t n, int32_t(*pivots)[LANES_##N],                \
                            int32_t *info) {                                                            \
    for (int64_t l = 0; l < LANES_##N; l++) info[l] = 0;                                                \
    for (int64_t k = 0; k < MIN(m, n); k++) {                                                           \
      T most[LANES_##N];                                                                                \
      for (int64_t l = 0; l < LANES_##N; l++)                                                           \
        most[l] = ABS(a[k * n + k][l]), pivots[k][l] = (int32_t)k;                                      \
      for (int64_t i = k + 1; i < m; i++)                                                               \
        for (int64_t l = 0; l < LANES_##N; l++) {                                                       \
          T x = ABS(a[i * n + k][l]);                                                                   \
          pivots[k][l] = x > most[l] ? (int32_t)i : pivots[k][l];                                       \
          most[l] = x > most[l] ? x : most[l];                                                          \
        }                                                                                               \
      V_##N d;                                                                                          \
      for (int64_t l = 0; l < LANES_##N; l++) {                                                         \
        if (pivots[k][l] != k) swap_rows_##N(a, n, k, pivots[k][l], l);                                 \
        pivots[k][l]++;                                                                                 \
        d[l] = a[k * n + k][l];                                                                         \
        if (d[l] != 0) continue;                                                                        \
        if (!info[l]) info[l] = (int32_t)k + 1;                                                         \
        d[l] = 1;                                                                                       \
      }                                                                                                 \
      for (int64_t i = k + 1; i < m; i++) {                                                             \
        V_##N f = a[i * n + k] = a[i * n + k] / d;                                                      \
        for (int64_t j = k + 1; j < n; j++) a[i * n + j] -= f * a[k * n + j];                           \
      }                                                                                                 \
    }                                                                                                   \
  }                                                                                                     \
  static void lu_groups_##N(void *arg, int64_t begin, int64_t end) {                                    \
    const Job *q = arg;                                                                                 \
    int64_t m = q->rows, n = q->cols, size = m * n, least = MIN(m, n);                                  \
    V_##N *a = cpu_scratch((size_t)size * BYTES);                                                       \
    for (int64_t g = begin * LANES_##N; g < MIN(q->batch, end * LANES_##N); g += LANES_##N) {           \
      int64_t some = MIN(LANES_##N, q->batch - g);                                                      \
      int32_t pivots[MOST][LANES_##N], info[LANES_##N];                                                 \
      take_##N((const T *)q->in + g * size, size, some, a);                                             \
      lu_##N(a, m, n, pivots, info);                                                                    \
      give_##N(a, size, some, (T *)q->out + g * size);                                                  \
      for (int64_t l = 0; l < some; l++) {                                                              \
        q->info[g + l] = info[l];                                                                       \
        for (int64_t k = 0; k < least; k++) q->pivots[(g + l) * least + k] = pivots[k][l];              \
      }                                                                                                 \
    }                                                                                                   \
  }                                                                                                     \
                                                                                                        \
  /* Columns `first` and on of a by the reflector 1 - tau v v' of column k: v_k = 1, the rest below. */ \
  static inline void reflect_##N(V_##N *a, int64_t m, int64_t n, int64_t k, int64_t first,              \
                                 V_##N tau) {                                                           \
    for (int64_t j = first; j < n; j++) {                                                               \
      V_##N w = a[k * n + j];                                                                           \
      for (int64_t i = k + 1; i < m; i++) w += a[i * n + k] * a[i * n + j];                             \
      w *= tau;                                                                                         \
      a[k * n + j] -= w;                                                                                \
      for (int64_t i = k + 1; i < m; i++) a[i * n + j] -= a[i * n + k] * w;                             \
    }                                                                                                   \
  }                                                                                                     \
  /* Where nothing is below the diagonal, tau is 0. Columns are measured by their largest element: \
   * squares neither overflow nor vanish. */    \
  CLONES static void qr_##N(V_##N *a, int64_t m, int64_t n, V_##N *tau) {                               \
    for (int64_t k = 0; k < MIN(m, n); k++) {                                                           \
      V_##N most = {0}, sum = {0}, v0;                                                                  \
      bool some[LANES_##N];                                                                             \
      for (int64_t i = m - 1; i >= k; i--)                                                              \
        for (int64_t l = 0; l < LANES_##N; l++) {                                                       \
          T x = ABS(a[i * n + k][l]);                                                                   \
          if (i == k) some[l] = !(most[l] == 0);                                                        \
          most[l] = x > most[l] || x != x ? x : most[l];                                                \
        }                                                                                               \
      for (int64_t l = 0; l < LANES_##N; l++) most[l] = some[l] ? most[l] : 1;                          \
      for (int64_t i = k; i < m; i++) sum += (a[i * n + k] / most) * (a[i * n + k] / most);             \
      for (int64_t l = 0; l < LANES_##N; l++) {                                                         \
        T alpha = a[k * n + k][l], norm = SQRT(sum[l]) * most[l], beta = alpha < 0 ? norm : -norm;      \
        tau[k][l] = some[l] ? (beta - alpha) / beta : 0;                                                \
        v0[l] = some[l] ? alpha - beta : 1;                                                             \
        a[k * n + k][l] = some[l] ? beta : alpha;                                                       \
      }                                                                                                 \
      for (int64_t i = k + 1; i < m; i++) a[i * n + k] /= v0;                                           \
      reflect_##N(a, m, n, k, k + 1, tau[k]);                                                           \
    }                                                                                                   \
  }                                                                                                     \
  /* The first n columns of the product of the reflectors, in their place; m >= n >= reflectors. */     \
  CLONES static void q_##N(V_##N *a, int64_t m, int64_t n, int64_t reflectors, const V_##N *tau) {      \
    for (int64_t j = reflectors; j < n; j++)                                                            \
      for (int64_t i = 0; i < m; i++) a[i * n + j] = (V_##N){0} + (T)(i == j);                          \
    for (int64_t k = reflectors - 1; k >= 0; k--) {                                                     \
      for (int64_t j = k + 1; j < n; j++)                                                               \
        a[k * n + j] = j < reflectors ? (V_##N){0} : a[k * n + j];                                      \
      reflect_##N(a, m, n, k, k + 1, tau[k]);                                                           \
      for (int64_t i = k + 1; i < m; i++) a[i * n + k] *= -tau[k];                                      \
      a[k * n + k] = 1 - tau[k];                                                                        \
      for (int64_t i = 0; i < k; i++) a[i * n + k] = (V_##N){0};                                        \
    }                                                                                                   \
  }                                                                                                     \
  static void groups_##N(const Job *q, int64_t begin, int64_t end, bool makes_q) {                      \
    int64_t m = q->rows, n = q->cols, size = m * n, k = q->reflectors;                                  \
    V_##N *a = cpu_scratch((size_t)(size + k) * BYTES), *tau = a + size;                                \
    for (int64_t g = begin * LANES_##N; g < MIN(q->batch, end * LANES_##N); g += LANES_##N) {           \
      int64_t some = MIN(LANES_##N, q->batch - g);                                                      \
      take_##N((const T *)q->in + g * size, size, some, a);                                             \
      if (makes_q) {                                                                                    \
        take_##N((const T *)q->tau + g * k, k, some, tau);                                              \
        q_##N(a, m, n, k, tau);                                                                         \
      } else {                                                                                          \
        qr_##N(a, m, n, tau);                                                                           \
        give_##N(tau, k, some, (T *)q->tau + g * k);                                                    \
      }                                                                                                 \
      give_##N(a, size, some, (T *)q->out + g * size);                                                  \
    }                                                                                                   \
  }                                                                                                     \
  static void qr_groups_##N(void *arg, int64_t begin, int64_t end) {                                    \
    groups_##N(arg, begin, end, false);                                                                 \
  }                                                                                                     \
  static void q_groups_##N(void *arg, int64_t begin, int64_t end) {                                     \
    groups_##N(arg, begin, end, true);                                                                  \
  }                                                                                                     \
                                                                                                        \
  /* l x = b for a triangle l, its element (i, k) at a[i * ai + k * ak], taken from the first   \
   * row on, or from the last; side j of the right has element i at x[i * xi + j * xj] */       \
  CLONES static void solve_##N(const V_##N *a, int64_t ai, int64_t ak, V_##N *x, int64_t xi,            \
                               int64_t xj, int64_t n, int64_t sides, bool first, bool unit) {           \
    for (int64_t q = 0; q < n; q++) {                                                                   \
      int64_t i = first ? q : n - 1 - q;                                                                \
      for (int64_t j = 0; j < sides; j++) {                                                             \
        V_##N v = x[i * xi + j * xj];                                                                   \
        for (int64_t p = 0; p < q; p++) {                                                               \
          int64_t k = first ? p : n - 1 - p;                                                            \
          v -= a[i * ai + k * ak] * x[k * xi + j * xj];                                                 \
        }                                                                                               \
        if (!unit) v /= a[i * ai + i * ak];                                                             \
        x[i * xi + j * xj] = v;                                                                         \
      }                                                                                                 \
    }                                                                                                   \
  }                                                                                                     \
  static void solve_groups_##N(void *arg, int64_t begin, int64_t end) {                                 \
    const Job *q = arg;                                                                                 \
    const SmallSolve *s = q->solve;                                                                     \
    int64_t n = s->left ? s->rows : s->cols, sides = s->left ? s->cols : s->rows;                       \
    int64_t size = n * n, right = s->rows * s->cols;                                                    \
    bool turned = s->transposed == s->left; /* x a = b is a' x' = b' */                                 \
    V_##N *a = cpu_scratch((size_t)(size + right) * BYTES), *x = a + size;                              \
    for (int64_t g = begin * LANES_##N; g < MIN(q->batch, end * LANES_##N); g += LANES_##N) {           \
      int64_t some = MIN(LANES_##N, q->batch - g);                                                      \
      take_##N((const T *)q->in + g * size, size, some, a);                                             \
      take_##N((const T *)q->out + g * right, right, some, x);                                          \
      solve_##N(a, turned ? 1 : n, turned ? n : 1, x, s->left ? s->cols : 1,                            \
                s->left ? 1 : s->cols, n, sides, s->lower != turned, s->unit);                          \
      give_##N(x, right, some, (T *)q->out + g * right);                                                \
    }                                                                                                   \
  }
FUNCTIONS(float, f32, sqrtf, fabsf)
FUNCTIONS(double, f64, sqrt, fabs)

/* Groups of lanes on the pool; work: operations on vectors for a group. */
static void run(DType t, Job *q, int64_t work, void (*narrow)(void *, int64_t, int64_t),
                void (*wide)(void *, int64_t, int64_t)) {
  int64_t lanes = BYTES / dtype_bytes(t);
  cpu_parallel((q->batch + lanes - 1) / lanes, MAX(1, 100000 / (work + 1)),
               t == DT_F32 ? narrow : wide, q);
}

void small_cholesky(DType t, bool lower, int64_t batch, int64_t n, const void *in, void *out) {
  Job q = {.batch = batch, .rows = n, .cols = n, .lower = lower, .in = in, .out = out};
  run(t, &q, n * n * n / 6 + 16 * n * n, cholesky_groups_f32, cholesky_groups_f64);
}

void small_lu(DType t, int64_t batch, int64_t rows, int64_t cols, const void *in, void *out,
              int32_t *pivots, int32_t *info) {
  Job q = {.batch = batch,
           .rows = rows,
           .cols = cols,
           .in = in,
           .out = out,
           .pivots = pivots,
           .info = info};
  run(t, &q, rows * rows * cols / 3 + 32 * rows * cols, lu_groups_f32, lu_groups_f64);
}

void small_qr(DType t, int64_t batch, int64_t rows, int64_t cols, const void *in, void *out,
              void *tau) {
  Job q = {.batch = batch,
           .rows = rows,
           .cols = cols,
           .reflectors = MIN(rows, cols),
           .in = in,
           .out = out,
           .tau = tau};
  run(t, &q, 2 * rows * cols * q.reflectors + 32 * rows * cols, qr_groups_f32, qr_groups_f64);
}

void small_q(DType t, int64_t batch, int64_t rows, int64_t cols, int64_t reflectors, const void *in,
             const void *tau, void *out) {
  Job q = {.batch = batch,
           .rows = rows,
           .cols = cols,
           .reflectors = reflectors,
           .in = in,
           .out = out,
           .tau = (void *)tau};
  run(t, &q, 2 * rows * cols * reflectors + 32 * rows * cols, q_groups_f32, q_groups_f64);
}

void small_solve(DType t, const SmallSolve *s, const void *a, void *x) {
  Job q = {.batch = s->batch, .in = a, .out = x, .solve = s};
  int64_t n = s->left ? s->rows : s->cols;
  run(t, &q, s->rows * s->cols * (n + 16), solve_groups_f32, solve_groups_f64);
}
