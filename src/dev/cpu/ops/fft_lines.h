/* Between memory and the vectors of fft_passes.h, for one type and width: see fft_code.h. */

static inline int64_t NAME(begin)(const FftLines *l, int64_t i) {
  return i / l->inner * l->outer + i % l->inner;
}

/* ---- lines side by side ---- */

/* `count` numbers of each of the lines at `in`: number e of all is vector to[e]. */
FN static void NAME(take)(const T *const *in, int64_t count, V *to) {
  int64_t e = 0;
  for (; e + LANES <= count; e += LANES) {
    V r[LANES];
    UNROLL for (int l = 0; l < LANES; l++) r[l] = NAME(load)(in[l] + e);
    NAME(transpose)(r);
    UNROLL for (int l = 0; l < LANES; l++) to[e + l] = r[l];
  }
  for (; e < count; e++)
    for (int l = 0; l < LANES; l++) to[e][l] = in[l][e];
}

/* To the first `lines` lines at `out`, times scale. */
FN static void NAME(give)(const V *from, int64_t count, int lines, T scale, T *const *out) {
  int64_t e = 0;
  for (; e + LANES <= count; e += LANES) {
    V r[LANES];
    UNROLL for (int l = 0; l < LANES; l++) r[l] = from[e + l] * scale;
    NAME(transpose)(r);
    if (lines == LANES) {
      UNROLL for (int l = 0; l < LANES; l++) NAME(store)(out[l] + e, r[l]);
    } else {
      UNROLL for (int l = 0; l < LANES; l++) if (l < lines) NAME(store)(out[l] + e, r[l]);
    }
  }
  for (; e < count; e++)
    for (int l = 0; l < lines; l++) out[l][e] = from[e][l] * scale;
}

/* n complex numbers of each line, `step` apart; side: the lines stand side by side in memory. */
FN static void NAME(take_complex)(const T *const *in, int64_t step, bool side, int64_t n, V *to) {
  if (side) {
    const T *a = in[0];
    for (int64_t k = 0; k < n; k++, a += 2 * step)
      NAME(unzip)(NAME(load)(a), NAME(load)(a + LANES), &to[2 * k], &to[2 * k + 1]);
  } else if (step == 1) {
    NAME(take)(in, 2 * n, to);
  } else {
    for (int64_t k = 0; k < n; k++)
      for (int l = 0; l < LANES; l++) {
        to[2 * k][l] = in[l][2 * k * step];
        to[2 * k + 1][l] = in[l][2 * k * step + 1];
      }
  }
}

FN static void NAME(give_complex)(const V *from, int64_t step, bool side, int64_t n, int lines,
                                  T scale, T *const *out) {
  if (side) {
    T *a = out[0];
    for (int64_t k = 0; k < n; k++, a += 2 * step)
      NAME(put)(a, from[2 * k], from[2 * k + 1], scale);
  } else if (step == 1) {
    NAME(give)(from, 2 * n, lines, scale, out);
  } else {
    for (int64_t k = 0; k < n; k++)
      for (int l = 0; l < lines; l++) {
        out[l][2 * k * step] = from[2 * k][l] * scale;
        out[l][2 * k * step + 1] = from[2 * k + 1][l] * scale;
      }
  }
}

/* untie of every line, in place; X[0] and X[h] are real: X[h] is left as the imaginary part of
 * element 0. X[k] = (Z[k] + Z*[h-k]) / 2 - i w^k (Z[k] - Z*[h-k]) / 2. */
FN static void NAME(untie_all)(int64_t h, const T *w, V *z) {
  V a = z[0], b = z[1];
  z[0] = a + b, z[1] = a - b;
  for (int64_t k = 1; k <= h / 2; k++) {
    const T c = w[k], d = w[h + 1 + k], half = (T)0.5;
    V *x = z + 2 * k, *y = z + 2 * (h - k);
    V sr = half * (x[0] + y[0]), si = half * (x[1] - y[1]);
    V dr = half * (x[0] - y[0]), di = half * (x[1] + y[1]);
    V er = c * di + d * dr, ei = d * di - c * dr;
    x[0] = sr + er, x[1] = si + ei;
    y[0] = sr - er, y[1] = ei - si;
  }
}

/* Back, twice as large: Z[k] = X[k] + X*[h-k] + i w^-k (X[k] - X*[h-k]). */
FN static void NAME(tie_all)(int64_t h, const T *w, V *z) {
  V a = z[0], b = z[1];
  z[0] = a + b, z[1] = a - b;
  for (int64_t k = 1; k <= h / 2; k++) {
    const T c = w[k], d = w[h + 1 + k];
    V *x = z + 2 * k, *y = z + 2 * (h - k);
    V sr = x[0] + y[0], si = x[1] - y[1], dr = x[0] - y[0], di = x[1] + y[1];
    V er = d * dr - c * di, ei = c * dr + d * di;
    x[0] = sr + er, x[1] = si + ei;
    y[0] = sr - er, y[1] = ei - si;
  }
}

/* Element k of lane l, whose number is first + l, times w[k * width + first + l]. */
FN static void NAME(turn)(int64_t n, const T *w, int64_t first, int lines, int64_t width, int re,
                          V *z) {
  for (int64_t k = 0; k < n; k++, z += 2) {
    const T *v = w + 2 * (k * width + first);
    V c = {0}, d = {0}, a = z[re], b = z[!re];
    if (lines == LANES) {
      NAME(unzip)(NAME(load)(v), NAME(load)(v + LANES), &c, &d);
    } else {
      for (int l = 0; l < lines; l++) c[l] = v[2 * l], d[l] = v[2 * l + 1];
    }
    z[re] = a * c - b * d;
    z[!re] = a * d + b * c;
  }
}

/* See fft.h; lines that are not there repeat the last. */
FN static void NAME(lines)(const FftJob *j, int64_t first, void *x_, void *y_) {
  V *x = x_, *y = y_;
  int64_t n = j->f->n, half = n / 2 + 1;
  int lines = (int)MIN(LANES, j->count - first);
  bool odd = j->form != FFT_COMPLEX && j->length % 2, real_in = odd && j->form == FFT_FROM_REAL,
       real_out = odd && j->form == FFT_TO_REAL;
  const T *in[LANES];
  T *out[LANES];
  for (int l = 0; l < LANES; l++) {
    int64_t i = first + MIN(l, lines - 1);
    in[l] = (const T *)j->in + (real_in ? 1 : 2) * NAME(begin)(&j->from, i);
    out[l] = (T *)j->out + (real_out ? 1 : 2) * NAME(begin)(&j->to, i);
  }
  bool in_side = lines == LANES && first % j->from.inner + LANES <= j->from.inner,
       out_side = lines == LANES && first % j->to.inner + LANES <= j->to.inner;
  if (real_in) {
    NAME(take)(in, n, x + n);
    for (int64_t k = 0; k < n; k++) x[2 * k] = x[n + k], x[2 * k + 1] = (V){0};
  } else {
    NAME(take_complex)(in, j->from.inner, in_side, real_out ? half : n, x);
  }
  if (real_out) { /* the other half: the conjugates */
    x[1] = (V){0};
    for (int64_t k = half; k < n; k++)
      x[2 * k] = x[2 * (n - k)], x[2 * k + 1] = -x[2 * (n - k) + 1];
  } else if (j->form == FFT_TO_REAL) {
    for (int l = 0; l < LANES; l++) x[1][l] = in[l][2 * n];
    NAME(tie_all)(n, j->untie, x);
  }
  bool even = j->form == FFT_FROM_REAL && !odd;
  T scale = (T)j->scale;
  NAME(Sink) sink = {out[0], j->to.inner, scale};
  bool direct = out_side && !j->turn && !odd && !even;
  V *z = NAME(transform)(j->f, x, j->inverse, y, j->inverse, direct ? &sink : NULL);
  if (direct) return;
  if (j->turn) NAME(turn)(n, j->turn, first, lines, j->from.inner, j->inverse, z);
  if (real_out) {
    for (int64_t k = 0; k < n; k++) z[k] = z[2 * k];
    NAME(give)(z, n, lines, scale, out);
    return;
  }
  if (even) NAME(untie_all)(n, j->untie, z);
  NAME(give_complex)(z, j->to.inner, out_side, odd ? half : n, lines, scale, out);
  for (int l = 0; l < lines && even; l++)
    out[l][1] = 0, out[l][2 * n] = z[1][l], out[l][2 * n + 1] = 0;
}

/* ---- one line ---- */

/* Vectors of k, k + 1 .. and h - k, h - k - 1 .. of the h complex numbers at z. */
INLINE void NAME(both_ends)(const T *z, int64_t h, int64_t k, V *ar, V *ai, V *br, V *bi) {
  const T *b = z + 2 * (h - k - LANES + 1);
  NAME(unzip)(NAME(load)(z + 2 * k), NAME(load)(z + 2 * k + LANES), ar, ai);
  NAME(unzip)(NAME(load)(b), NAME(load)(b + LANES), br, bi);
  *br = NAME(back)(*br), *bi = NAME(back)(*bi);
}

/* Elements 1 .. h - 1 by vectors, of which the last may repeat some. */
#define EACH_VECTOR(k, h) \
  for (int64_t k = 1; k < h; k = k + LANES < h && k + 2 * LANES > h ? h - LANES : k + LANES)

FN static void NAME(untie)(int64_t h, const void *table, const void *from, void *to) {
  const T *w = table, *z = from, half = (T)0.5;
  T *out = to, a = z[0], b = z[1];
  EACH_VECTOR(k, h) {
    V ar, ai, br, bi, c = NAME(load)(w + k), d = NAME(load)(w + h + 1 + k);
    NAME(both_ends)(z, h, k, &ar, &ai, &br, &bi);
    V sr = ar + br, si = ai - bi, dr = ar - br, di = ai + bi;
    NAME(put)(out + 2 * k, sr + (c * di + d * dr), si + (d * di - c * dr), half);
  }
  out[0] = a + b, out[1] = 0;
  out[2 * h] = a - b, out[2 * h + 1] = 0;
}

FN static void NAME(tie)(int64_t h, const void *table, const void *from, void *to) {
  const T *w = table, *x = from;
  T *z = to;
  z[0] = x[0] + x[2 * h], z[1] = x[0] - x[2 * h];
  EACH_VECTOR(k, h) {
    V ar, ai, br, bi, c = NAME(load)(w + k), d = NAME(load)(w + h + 1 + k);
    NAME(both_ends)(x, h, k, &ar, &ai, &br, &bi);
    V sr = ar + br, si = ai - bi, dr = ar - br, di = ai + bi;
    NAME(put)(z + 2 * k, sr + (d * dr - c * di), si + (c * dr + d * di), 1);
  }
}

/* The first pass, whose radix is LANES: vectors of neighbours, as many results of each lane. */
INLINE void NAME(first_legs)(const T *in, int64_t m, int64_t some, int swapped, const V *w, V *y) {
  V r[LANES], i[LANES];
  UNROLL for (int j = 0; j < LANES; j++) {
    const T *a = in + 2 * j * m;
    V lo = {0}, hi = {0}, even, odd;
    if (some == LANES) {
      lo = NAME(load)(a), hi = NAME(load)(a + LANES);
    } else {
      T both[2 * LANES] = {0};
      memcpy(both, a, sizeof(T) * 2 * (size_t)some);
      lo = NAME(load)(both), hi = NAME(load)(both + LANES);
    }
    NAME(unzip)(lo, hi, &even, &odd);
    r[j] = swapped ? odd : even, i[j] = swapped ? even : odd;
  }
  NAME(dft)(LANES, r, i);
  UNROLL for (int j = 1; j < LANES; j++) {
    V c = w[2 * j - 2], d = w[2 * j - 1], a = r[j], b = i[j];
    r[j] = a * c - b * d;
    i[j] = a * d + b * c;
  }
  NAME(transpose)(r);
  if (some == LANES) {
    UNROLL for (int l = 0; l < LANES; l++) y[2 * l] = r[l];
  } else {
    UNROLL for (int l = 0; l < LANES; l++) if (l < some) y[2 * l] = r[l];
  }
  NAME(transpose)(i);
  if (some == LANES) {
    UNROLL for (int l = 0; l < LANES; l++) y[2 * l + 1] = i[l];
  } else {
    UNROLL for (int l = 0; l < LANES; l++) if (l < some) y[2 * l + 1] = i[l];
  }
}

FN static void NAME(first)(const T *in, int64_t m, const V *w, V *y) {
  int64_t p = 0;
  for (; p + LANES <= m; p += LANES, w += 2 * (LANES - 1))
    NAME(first_legs)(in + 2 * p, m, LANES, 0, w, y + 2 * p);
  if (p < m) NAME(first_legs)(in + 2 * p, m, m - p, 0, w, y + 2 * p);
}

FN static void NAME(first_swapped)(const T *in, int64_t m, const V *w, V *y) {
  int64_t p = 0;
  for (; p + LANES <= m; p += LANES, w += 2 * (LANES - 1))
    NAME(first_legs)(in + 2 * p, m, LANES, 1, w, y + 2 * p);
  if (p < m) NAME(first_legs)(in + 2 * p, m, m - p, 1, w, y + 2 * p);
}

FN static void NAME(row)(const FftJob *j, int64_t i, void *x, void *y) {
  const FftRow *row = j->row;
  int64_t m = row->rest->n, n = m * LANES;
  const T *in = (const T *)j->in + 2 * NAME(begin)(&j->from, i);
  T *out = (T *)j->out + 2 * NAME(begin)(&j->to, i);
  if (j->form == FFT_TO_REAL) {
    NAME(tie)(n, j->untie, in, x);
    in = x;
  }
  (j->inverse ? NAME(first_swapped) : NAME(first))(in, m, row->w, y);
  bool real = j->form == FFT_FROM_REAL;
  NAME(Sink)
  sink = {real ? (T *)x + fft_area_of(row->rest, LANES) : out, LANES, real ? 1 : (T)j->scale};
  NAME(transform)(row->rest, y, 0, x, j->inverse, &sink);
  if (real) NAME(untie)(n, j->untie, sink.out, out);
}
