/* small_eigen.c for one type. The includer defines T, INT of its size, NAME, EPSILON and the
 * functions. */
#define V NAME(Vector)
#define M NAME(Mask)
#define LANES ((int64_t)(BYTES / sizeof(T)))
typedef T V __attribute__((vector_size(BYTES), may_alias));
typedef INT M __attribute__((vector_size(BYTES), may_alias));

typedef struct NAME(Turn) {
  V c, s, t;
  bool any; /* lane is turned */
  int64_t p, q;
} NAME(Turn);

static inline __attribute__((always_inline)) V NAME(choose)(M mask, V yes, V no) {
  return (V)(((M)yes & mask) | ((M)no & ~mask));
}

/* By which [a, c; c, b] becomes diagonal, in the lanes of `turned`. */
static inline __attribute__((always_inline)) void NAME(angle)(NAME(Turn) * r, V a, V b, V c,
                                                              M turned) {
  V d = b - a, e = c + c, root, low, zero = {0}, one = zero + 1;
  for (int64_t l = 0; l < LANES; l++) root[l] = SQRT(d[l] * d[l] + e[l] * e[l]);
  low = NAME(choose)((M)(d < 0), -d, d) + root;
  turned &= (M)(low > 0);
  V t = NAME(choose)((M)(d < 0), -e, e) / NAME(choose)(turned, low, one);
  r->t = NAME(choose)(turned, t, zero);
  V square = one + r->t * r->t;
  for (int64_t l = 0; l < LANES; l++) root[l] = SQRT(square[l]);
  r->c = one / root;
  r->s = r->t * r->c;
  INT any = 0;
  for (int64_t l = 0; l < LANES; l++) any |= turned[l];
  r->any = any != 0;
}

static inline __attribute__((always_inline)) void NAME(rotate)(const NAME(Turn) * r, V *x, V *y) {
  V a = *x, b = *y;
  *x = r->c * a - r->s * b;
  *y = r->s * a + r->c * b;
}

static inline __attribute__((always_inline)) void NAME(rotate_rows)(const NAME(Turn) * r, V *x,
                                                                    V *y, int64_t n) {
  for (int64_t k = 0; k < n; k++) NAME(rotate)(r, x + k, y + k);
}

static void NAME(set_identity)(V *v, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) v[i * n + j] = (V){0} + (T)(i == j);
}

/* Elements of a matrix with their largest one between 1/2 and 1; which lanes hold a finite matrix, those
 * that do not: zeros. */
CLONES static void NAME(measure)(V *a, int64_t n, int *exponent, bool *finite) {
  V most = {0}, scale;
  M all = (M)(most == most);
  for (int64_t i = 0; i < n; i++) {
    V x = NAME(choose)((M)(a[i] < 0), -a[i], a[i]), zero = a[i] - a[i];
    all &= (M)(zero == zero);
    most = NAME(choose)((M)(x > most), x, most);
  }
  for (int64_t l = 0; l < LANES; l++) {
    finite[l] = all[l] != 0;
    exponent[l] = 0;
    if (finite[l] && most[l] > 0) (void)FREXP(most[l], &exponent[l]);
  }
  for (int part = 0; part < 2; part++) { /* in two steps: the power itself may be no number */
    for (int64_t l = 0; l < LANES; l++) {
      int half = exponent[l] / 2;
      scale[l] = LDEXP(1, part ? half - exponent[l] : -half);
    }
    for (int64_t i = 0; i < n; i++) a[i] = NAME(choose)(all, a[i] * scale, (V){0});
  }
}

/* ---- eigenvalues: element (i, j) with i <= j at a[i * ld + j]; row j of v: vector j ---- */

CLONES static void NAME(eigh)(V *a, int64_t ld, V *v, int64_t n) {
  NAME(Turn) turn[MOST / 2 + 1];
  const int64_t even = n + n % 2;
  const T limit = EPSILON / 4;
  bool any = n > 1;
  for (int sweep = 0; any && sweep < MOST_SWEEPS; sweep++) {
    any = false;
    for (int64_t round = 0; round < even - 1; round++) {
      for (int64_t k = 0; k < even / 2; k++) {
        NAME(Turn) *r = &turn[k];
        meet(even, round, k, &r->p, &r->q);
        r->any = false;
        if (r->q >= n) continue;
        V c = a[r->p * ld + r->q];
        NAME(angle)
        (r, a[r->p * ld + r->p], a[r->q * ld + r->q], c, (M)(c > limit) | (M)(c < -limit));
        any |= r->any;
      }
      for (int64_t k = 0; k < even / 2; k++) {
        const NAME(Turn) *r = &turn[k];
        const int64_t p = r->p, q = r->q;
        if (!r->any) continue;
        V c = a[p * ld + q];
        a[p * ld + p] -= r->t * c;
        a[q * ld + q] += r->t * c;
        a[p * ld + q] = NAME(choose)((M)(c > limit) | (M)(c < -limit), (V){0}, c);
        for (int64_t i = 0; i < p; i++) NAME(rotate)(r, &a[i * ld + p], &a[i * ld + q]);
        for (int64_t i = p + 1; i < q; i++) NAME(rotate)(r, &a[p * ld + i], &a[i * ld + q]);
        NAME(rotate_rows)(r, &a[p * ld + q + 1], &a[q * ld + q + 1], n - q - 1);
        if (v) NAME(rotate_rows)(r, v + p * n, v + q * n, n);
      }
    }
  }
}

/* The order of n numbers of lane l, n apart in memory by `step`. */
static void NAME(sorted)(const V *x, int64_t step, int64_t n, int64_t l, bool falling, int *order) {
  for (int64_t i = 0; i < n; i++) {
    int64_t at = i;
    T now = x[i * step][l];
    for (; at > 0; at--) {
      T before = x[order[at - 1] * step][l];
      if (falling ? before >= now : before <= now) break;
      order[at] = order[at - 1];
    }
    order[at] = (int)i;
  }
}

static void NAME(eigh_groups)(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  const int64_t n = j->rows, size = n * n, ld = n | 1; /* columns do not meet in the cache */
  V *a = cpu_scratch((size_t)(n * ld + size) * BYTES), *v = j->v ? a + n * ld : NULL;
  memset(a, 0, (size_t)(n * ld) * BYTES);
  for (int64_t g = begin * LANES; g < MIN(j->batch, end * LANES); g += LANES) {
    int64_t some = MIN(LANES, j->batch - g);
    int exponent[BYTES / sizeof(T)], order[MOST];
    bool finite[BYTES / sizeof(T)];
    for (int64_t l = 0; l < LANES; l++) {
      const T *in = (const T *)j->in + (g + MIN(l, some - 1)) * size;
      for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++)
          a[i * ld + k][l] = in[j->lower ? MAX(i, k) * n + MIN(i, k) : MIN(i, k) * n + MAX(i, k)];
    }
    NAME(measure)(a, n * ld, exponent, finite);
    if (v) NAME(set_identity)(v, n);
    NAME(eigh)(a, ld, v, n);
    for (int64_t l = 0; l < some; l++) {
      T *w = (T *)j->w + (g + l) * n, *out = v ? (T *)j->v + (g + l) * size : NULL;
      j->info[g + l] = finite[l] ? 0 : -4;
      NAME(sorted)(a, ld + 1, n, l, false, order);
      for (int64_t k = 0; k < n; k++) {
        w[k] = LDEXP(a[order[k] * (ld + 1)][l], exponent[l]);
        for (int64_t i = 0; i < n && out; i++)
          out[i * n + k] = finite[l] ? v[order[k] * n + i][l] : 0;
      }
    }
  }
}

/* ---- singular values: column j of m numbers at a[j * m], turned until all n are orthogonal ---- */

CLONES static void NAME(svd)(V *a, V *v, int64_t m, int64_t n) {
  NAME(Turn) turn;
  const int64_t even = n + n % 2;
  const T relative = EPSILON * (2 + SQRT((T)m)); /* what rounding leaves of a product */
  bool any = n > 1;
  for (int sweep = 0; any && sweep < MOST_SWEEPS; sweep++) {
    any = false;
    for (int64_t round = 0; round < even - 1; round++)
      for (int64_t k = 0; k < even / 2; k++) {
        int64_t p, q;
        meet(even, round, k, &p, &q);
        if (q >= n) continue;
        V *x = a + p * m, *y = a + q * m, xx = {0}, yy = {0}, xy = {0}, bound;
        for (int64_t i = 0; i < m; i++) xx += x[i] * x[i], yy += y[i] * y[i], xy += x[i] * y[i];
        for (int64_t l = 0; l < LANES; l++) bound[l] = SQRT(xx[l]) * SQRT(yy[l]);
        bound = bound * relative + (T)(EPSILON * EPSILON * EPSILON);
        NAME(angle)(&turn, xx, yy, xy, (M)(xy > bound) | (M)(xy < -bound));
        if (!turn.any) continue;
        any = true;
        NAME(rotate_rows)(&turn, x, y, m);
        if (v) NAME(rotate_rows)(&turn, v + p * n, v + q * n, n);
      }
  }
}

/* Columns of lane l that are nothing beside the largest, of a matrix without full rank, become ones that are orthogonal to
 * all others. */
static void NAME(complete)(V *a, const bool *there, int64_t m, int64_t n, int64_t l) {
  bool have[MOST];
  memcpy(have, there, (size_t)n);
  for (int64_t j = 0, next = 0; j < n; j++)
    for (; !have[j] && next < m; next++) {
      V *x = a + j * m;
      for (int64_t i = 0; i < m; i++) x[i][l] = i == next;
      T norm = 0;
      for (int turns = 0; turns < 2; turns++) {
        for (int64_t k = 0; k < n; k++) {
          T dot = 0;
          if (!have[k]) continue;
          for (int64_t i = 0; i < m; i++) dot += x[i][l] * a[k * m + i][l];
          for (int64_t i = 0; i < m; i++) x[i][l] -= dot * a[k * m + i][l];
        }
        norm = 0;
        for (int64_t i = 0; i < m; i++) norm += x[i][l] * x[i][l];
      }
      if (norm * (T)(4 * m) < 1) continue; /* some unit vector has 1 / m outside of what there is */
      for (int64_t i = 0; i < m; i++) x[i][l] /= SQRT(norm);
      have[j] = true;
    }
}

static void NAME(svd_groups)(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  const bool wide = j->rows < j->cols; /* the transpose then; its u is our v */
  const int64_t m = MAX(j->rows, j->cols), n = MIN(j->rows, j->cols), size = m * n;
  V *a = cpu_scratch((size_t)(size + n * n + n) * BYTES), *s = a + size, *v = j->u ? s + n : NULL;
  for (int64_t g = begin * LANES; g < MIN(j->batch, end * LANES); g += LANES) {
    int64_t some = MIN(LANES, j->batch - g);
    int exponent[BYTES / sizeof(T)], order[MOST];
    bool finite[BYTES / sizeof(T)], there[MOST];
    for (int64_t l = 0; l < LANES; l++) {
      const T *in = (const T *)j->in + (g + MIN(l, some - 1)) * size;
      for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < m; i++) a[k * m + i][l] = in[wide ? k * m + i : i * n + k];
    }
    NAME(measure)(a, size, exponent, finite);
    if (v) NAME(set_identity)(v, n);
    NAME(svd)(a, v, m, n);
    for (int64_t k = 0; k < n; k++) {
      V sum = {0};
      for (int64_t i = 0; i < m; i++) sum += a[k * m + i] * a[k * m + i];
      for (int64_t l = 0; l < LANES; l++) s[k][l] = SQRT(sum[l]);
    }
    for (int64_t l = 0; l < some; l++) {
      NAME(sorted)(s, 1, n, l, true, order);
      T *w = (T *)j->w + (g + l) * n, least = s[order[0]][l] * (EPSILON / 16);
      j->info[g + l] = finite[l] ? 0 : -4;
      bool full = true;
      for (int64_t k = 0; k < n; k++) {
        w[k] = LDEXP(s[order[k]][l], exponent[l]);
        there[k] = s[k][l] > least;
        full &= there[k];
        for (int64_t i = 0; i < m && there[k] && v; i++) a[k * m + i][l] /= s[k][l];
      }
      if (!v) continue;
      if (!full) NAME(complete)(a, there, m, n, l);
      T *u = (T *)j->u + (g + l) * j->rows * n, *vt = (T *)j->v + (g + l) * j->cols * n;
      for (int64_t k = 0; k < n; k++) {
        const V *x = a + order[k] * m, *y = v + order[k] * n;
        for (int64_t i = 0; i < j->rows; i++) u[i * n + k] = finite[l] ? (wide ? y : x)[i][l] : 0;
        for (int64_t i = 0; i < j->cols; i++)
          vt[k * j->cols + i] = finite[l] ? (wide ? x : y)[i][l] : 0;
      }
    }
  }
}
#undef V
#undef M
#undef LANES
