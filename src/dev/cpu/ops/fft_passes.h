/* The passes of an Fft for one type and width of vectors: see fft_code.h. The includer defines T,
 * NAME and LANES. Element e of n is the vectors x[2 e] and x[2 e + 1]. */
#define V NAME(Vector)
#define UNROLL _Pragma("GCC unroll 16")

typedef T V __attribute__((vector_size(BYTES), may_alias));

INLINE void NAME(zip)(V a, V b, V *lo, V *hi) { /* a0 b0 a1 b1 .. */
  *lo = __builtin_shufflevector(a, b, AT(ZIP_LO));
  *hi = __builtin_shufflevector(a, b, AT(ZIP_HI));
}

INLINE void NAME(unzip)(V a, V b, V *even, V *odd) {
  *even = __builtin_shufflevector(a, b, AT(EVEN));
  *odd = __builtin_shufflevector(a, b, AT(ODD));
}

INLINE V NAME(back)(V a) { return __builtin_shufflevector(a, a, AT(BACK)); }

INLINE V NAME(load)(const T *p) {
  V v;
  memcpy(&v, p, sizeof v);
  return v;
}

INLINE void NAME(store)(T *p, V v) { memcpy(p, &v, sizeof v); }

/* LANES rows become columns: after log2 of LANES zips of row i and the row half of them behind. */
INLINE void NAME(transpose)(V *r) {
  for (int k = 1; k < LANES; k *= 2) {
    V t[LANES];
    UNROLL for (int i = 0; i < LANES / 2; i++)
        NAME(zip)(r[i], r[i + LANES / 2], &t[2 * i], &t[2 * i + 1]);
    UNROLL for (int i = 0; i < LANES; i++) r[i] = t[i];
  }
}

/* ---- transforms of R elements in registers, in place and in natural order ---- */

INLINE void NAME(dft2)(V *r, V *i, int s) {
  V a = r[0], b = i[0];
  r[0] = a + r[s], i[0] = b + i[s];
  r[s] = a - r[s], i[s] = b - i[s];
}

INLINE void NAME(dft3)(V *r, V *i) {
  const T half = (T)0.5, h = (T)0.86602540378443864676;
  V tr = r[1] + r[2], ti = i[1] + i[2], dr = h * (r[1] - r[2]), di = h * (i[1] - i[2]);
  V er = r[0] - half * tr, ei = i[0] - half * ti;
  r[0] += tr, i[0] += ti;
  r[1] = er + di, i[1] = ei - dr;
  r[2] = er - di, i[2] = ei + dr;
}

INLINE void NAME(dft4)(V *r, V *i, int s) {
  V sr = r[0] + r[2 * s], si = i[0] + i[2 * s], tr = r[0] - r[2 * s], ti = i[0] - i[2 * s];
  V ur = r[s] + r[3 * s], ui = i[s] + i[3 * s], vr = r[s] - r[3 * s], vi = i[s] - i[3 * s];
  r[0] = sr + ur, i[0] = si + ui;
  r[s] = tr + vi, i[s] = ti - vr;
  r[2 * s] = sr - ur, i[2 * s] = si - ui;
  r[3 * s] = tr - vi, i[3 * s] = ti + vr;
}

/* An odd number of elements, k and R - k together; c[k] + i s[k] = e^(2 pi i k / R). */
INLINE void NAME(dft_odd)(const int R, const T *c, const T *s, V *r, V *i) {
  enum { MOST = 3 };
  V pr[MOST + 1], pi[MOST + 1], mr[MOST + 1], mi[MOST + 1], zr = r[0], zi = i[0];
  UNROLL for (int k = 1; k <= R / 2; k++) {
    pr[k] = r[k] + r[R - k], pi[k] = i[k] + i[R - k];
    mr[k] = r[k] - r[R - k], mi[k] = i[k] - i[R - k];
    r[0] += pr[k], i[0] += pi[k];
  }
  UNROLL for (int j = 1; j <= R / 2; j++) {
    V er = zr, ei = zi, fr = {0}, fi = {0};
    UNROLL for (int k = 1; k <= R / 2; k++) {
      er += c[j * k % R] * pr[k], ei += c[j * k % R] * pi[k];
      fr += s[j * k % R] * mi[k], fi -= s[j * k % R] * mr[k];
    }
    r[j] = er + fr, i[j] = ei + fi;
    r[R - j] = er - fr, i[R - j] = ei - fi;
  }
}

INLINE void NAME(dft5)(V *r, V *i) {
  const T a = (T)0.30901699437494742410, b = (T)-0.80901699437494742410,
          d = (T)0.95105651629515357212, e = (T)0.58778525229247312917;
  const T c[5] = {1, a, b, b, a}, s[5] = {0, d, e, -e, -d};
  NAME(dft_odd)(5, c, s, r, i);
}

INLINE void NAME(dft7)(V *r, V *i) {
  const T a = (T)0.62348980185873353053, b = (T)-0.22252093395631440429,
          d = (T)-0.90096886790241912624, e = (T)0.78183148246802980871,
          f = (T)0.97492791218182360702, g = (T)0.43388373911755812048;
  const T c[7] = {1, a, b, d, d, b, a}, s[7] = {0, e, f, g, -g, -f, -e};
  NAME(dft_odd)(7, c, s, r, i);
}

INLINE void NAME(turned)(V *r, V *i, T c, T s) { /* times c - i s */
  V a = *r, b = *i;
  *r = a * c + b * s;
  *i = b * c - a * s;
}

/* Element 2 a + b: over a, then over b. */
INLINE void NAME(dft8)(V *r, V *i) {
  const T h = (T)0.70710678118654752440;
  NAME(dft4)(r, i, 2);
  NAME(dft4)(r + 1, i + 1, 2);
  V a = r[3], b = i[3];
  r[3] = h * (a + b), i[3] = h * (b - a);
  a = r[5], b = i[5];
  r[5] = b, i[5] = -a;
  a = r[7], b = i[7];
  r[7] = h * (b - a), i[7] = -h * (a + b);
  V x[8], y[8];
  UNROLL for (int c = 0; c < 4; c++) {
    NAME(dft2)(r + 2 * c, i + 2 * c, 1);
    x[c] = r[2 * c], y[c] = i[2 * c], x[c + 4] = r[2 * c + 1], y[c + 4] = i[2 * c + 1];
  }
  UNROLL for (int k = 0; k < 8; k++) r[k] = x[k], i[k] = y[k];
}

/* Element 4 a + b: over a, then over b. */
INLINE void NAME(dft16)(V *r, V *i) {
  const T c1 = (T)0.92387953251128675613, s1 = (T)0.38268343236508977173,
          h = (T)0.70710678118654752440;
  UNROLL for (int b = 0; b < 4; b++) NAME(dft4)(r + b, i + b, 4);
  NAME(turned)(r + 5, i + 5, c1, s1);
  NAME(turned)(r + 6, i + 6, h, h);
  NAME(turned)(r + 7, i + 7, s1, c1);
  NAME(turned)(r + 9, i + 9, h, h);
  NAME(turned)(r + 10, i + 10, 0, 1);
  NAME(turned)(r + 11, i + 11, -h, h);
  NAME(turned)(r + 13, i + 13, s1, c1);
  NAME(turned)(r + 14, i + 14, -h, h);
  NAME(turned)(r + 15, i + 15, -c1, -s1);
  V x[16], y[16];
  UNROLL for (int c = 0; c < 4; c++) {
    NAME(dft4)(r + 4 * c, i + 4 * c, 1);
    UNROLL for (int d = 0; d < 4; d++) x[c + 4 * d] = r[4 * c + d], y[c + 4 * d] = i[4 * c + d];
  }
  UNROLL for (int k = 0; k < 16; k++) r[k] = x[k], i[k] = y[k];
}

INLINE void NAME(dft)(const int R, V *r, V *i) {
  switch (R) {
  case 2: NAME(dft2)(r, i, 1); break;
  case 3: NAME(dft3)(r, i); break;
  case 4: NAME(dft4)(r, i, 1); break;
  case 5: NAME(dft5)(r, i); break;
  case 7: NAME(dft7)(r, i); break;
  case 8: NAME(dft8)(r, i); break;
  default: NAME(dft16)(r, i); break;
  }
}

/* ---- passes ---- */

/* Where the last pass puts its results instead: element e from out + 2 * e * step on, parts one after
 * the other, times scale. */
typedef struct NAME(Sink) {
  T *out;
  int64_t step;
  T scale;
} NAME(Sink);

INLINE void NAME(put)(T *out, V r, V i, T scale) {
  V lo, hi;
  NAME(zip)(r * scale, i * scale, &lo, &hi);
  NAME(store)(out, lo);
  NAME(store)(out + LANES, hi);
}

/* from, to: 1 where the real parts stand behind the imaginary ones. */
INLINE void NAME(butterfly)(const int R, const bool last, const FftPass *a, const V *x, int from,
                            V *y, int to, const NAME(Sink) * sink) {
  const int64_t m = a->m, s = a->s, step = 2 * m * s;
  const T *w = a->w;
  for (int64_t p = 0; p < m; p++, w += 2 * (R - 1))
    for (int64_t q = 0; q < s; q++) {
      const V *b = x + 2 * (p * s + q);
      V *c = y + 2 * (R * p * s + q), r[16], i[16];
      UNROLL for (int k = 0; k < R; k++) r[k] = b[k * step + from], i[k] = b[k * step + !from];
      NAME(dft)(R, r, i);
      if (last && sink) {
        UNROLL for (int k = 0; k < R; k++)
            NAME(put)(sink->out + 2 * (k * s + q) * sink->step, to ? i[k] : r[k], to ? r[k] : i[k],
                      sink->scale);
        continue;
      }
      UNROLL for (int k = 0; k < R; k++) {
        V u = r[k], v = i[k];
        if (!last && k) {
          T wr = w[2 * k - 2], wi = w[2 * k - 1];
          u = r[k] * wr - i[k] * wi;
          v = r[k] * wi + i[k] * wr;
        }
        c[2 * k * s + to] = u, c[2 * k * s + !to] = v;
      }
    }
}

#define PASS(R)                                                                        \
  FN static void NAME(pass##R)(const FftPass *a, const V *x, int from, V *y, int to) { \
    NAME(butterfly)(R, false, a, x, from, y, to, NULL);                                \
  }                                                                                    \
  FN static void NAME(last##R)(const FftPass *a, const V *x, int from, V *y, int to,   \
                               const NAME(Sink) * sink) {                              \
    if (sink && to) NAME(butterfly)(R, true, a, x, from, y, 1, sink);                  \
    else if (sink) NAME(butterfly)(R, true, a, x, from, y, 0, sink);                   \
    else NAME(butterfly)(R, true, a, x, from, y, to, NULL);                            \
  }
PASS(2)
PASS(3)
PASS(4)
PASS(5)
PASS(7)
PASS(8)
#undef PASS

/* Any odd radix by its definition, elements k and r - k together. */
FN static void NAME(pass_any)(const FftPass *a, const V *x, int from, V *y, int to) {
  int64_t radix = a->radix, m = a->m, s = a->s, step = 2 * m * s;
  const T *w = a->w, *roots = a->roots;
  for (int64_t p = 0; p < m; p++, w += 2 * (radix - 1))
    for (int64_t q = 0; q < s; q++) {
      const V *b = x + 2 * (p * s + q);
      V *c = y + 2 * (radix * p * s + q);
      for (int64_t j = 0; j <= radix / 2; j++) {
        V er = b[from], ei = b[!from], fr = {0}, fi = {0};
        for (int64_t k = 1, t = j; k <= radix / 2; k++, t += j, t = t < radix ? t : t - radix) {
          const V *d = b + k * step, *e = b + (radix - k) * step;
          T u = roots[2 * t], v = roots[2 * t + 1];
          er += u * (d[from] + e[from]);
          ei += u * (d[!from] + e[!from]);
          fr -= v * (d[!from] - e[!from]);
          fi += v * (d[from] - e[from]);
        }
        for (int back = 0; back < (j ? 2 : 1); back++) {
          int64_t o = back ? radix - j : j;
          T wr = o ? w[2 * o - 2] : 1, wi = o ? w[2 * o - 1] : 0;
          V u = back ? er - fr : er + fr, v = back ? ei - fi : ei + fi;
          c[2 * o * s + to] = u * wr - v * wi;
          c[2 * o * s + !to] = u * wi + v * wr;
        }
      }
    }
}

/* Did the sink take the result? */
static bool NAME(pass)(const FftPass *a, const V *x, int from, V *y, int to, bool last,
                       const NAME(Sink) * sink) {
#define CASE(R)                                       \
  case R:                                             \
    if (last) NAME(last##R)(a, x, from, y, to, sink); \
    else NAME(pass##R)(a, x, from, y, to);            \
    return sink;
  switch (a->radix) {
    CASE(2)
    CASE(3)
    CASE(4)
    CASE(5)
    CASE(7)
    CASE(8)
  default: NAME(pass_any)(a, x, from, y, to); return false;
  }
#undef CASE
}

/* y = x times the n numbers at w (pairs), each for all lanes. */
FN static void NAME(times)(int64_t n, const T *w, const V *x, int from, V *y, int to) {
  for (int64_t k = 0; k < n; k++) {
    V a = x[2 * k + from], b = x[2 * k + !from];
    y[2 * k + to] = a * w[2 * k] - b * w[2 * k + 1];
    y[2 * k + !to] = a * w[2 * k + 1] + b * w[2 * k];
  }
}

/* from, to: as of a butterfly. NULL: the sink took the result. */
FN static V *NAME(transform)(const Fft *f, V *x, int from, V *y, int to, const NAME(Sink) * sink) {
  if (f->longer) { /* chirp, convolution with the filter, chirp; the inverse with parts swapped */
    int64_t big = f->longer->n;
    NAME(times)(f->n, f->chirp, x, from, y, 0);
    memset(y + 2 * f->n, 0, sizeof(V) * (size_t)(2 * (big - f->n)));
    V *a = NAME(transform)(f->longer, y, 0, x, 0, NULL), *b = a == y ? x : y;
    NAME(times)(big, f->filter, a, 0, a, 0);
    V *c = NAME(transform)(f->longer, a, 1, b, 1, NULL), *d = c == x ? y : x;
    NAME(times)(f->n, f->chirp, c, 0, d, to);
    x = d;
  } else {
    for (int i = 0; i < f->n_passes; i++, from = 0) {
      bool last = i == f->n_passes - 1;
      if (NAME(pass)(&f->pass[i], x, from, y, last ? to : 0, last, last ? sink : NULL)) return NULL;
      V *t = x;
      x = y;
      y = t;
    }
  }
  int swapped = f->n == 1 && from != to; /* nothing was done */
  for (int64_t e = 0; sink && e < f->n; e++)
    NAME(put)(sink->out + 2 * e * sink->step, x[2 * e + swapped], x[2 * e + !swapped], sink->scale);
  return sink ? NULL : x;
}

static void *NAME(forward)(const Fft *f, void *x, void *y, bool swapped) {
  return NAME(transform)(f, x, swapped, y, swapped, NULL);
}
