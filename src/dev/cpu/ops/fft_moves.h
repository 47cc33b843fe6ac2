/* Between memory and the lanes of fft.h, for one type. The includer defines T and NAME. `at`: where
 * each lane's line begins, its elements are `step` apart, in complex numbers; side: the lines stand
 * side by side. */

CLONES static void NAME(load)(const T *restrict in, const int64_t *at, int64_t step, bool side,
                              int64_t n, T *restrict re, T *restrict im) {
  if (side) {
    in += 2 * at[0];
    for (int64_t k = 0; k < n; k++)
      for (int l = 0; l < FFT_LANES; l++) {
        re[k * FFT_LANES + l] = in[2 * (k * step + l)];
        im[k * FFT_LANES + l] = in[2 * (k * step + l) + 1];
      }
    return;
  }
  for (int64_t k = 0; k < n; k++)
    for (int l = 0; l < FFT_LANES; l++) {
      re[k * FFT_LANES + l] = in[2 * (at[l] + k * step)];
      im[k * FFT_LANES + l] = in[2 * (at[l] + k * step) + 1];
    }
}

CLONES static void NAME(store)(T *restrict out, const int64_t *at, int lanes, int64_t step,
                               bool side, int64_t n, const T *restrict re, const T *restrict im,
                               T scale) {
  if (side) {
    out += 2 * at[0];
    for (int64_t k = 0; k < n; k++)
      for (int l = 0; l < FFT_LANES; l++) {
        out[2 * (k * step + l)] = re[k * FFT_LANES + l] * scale;
        out[2 * (k * step + l) + 1] = im[k * FFT_LANES + l] * scale;
      }
    return;
  }
  for (int64_t k = 0; k < n; k++)
    for (int l = 0; l < lanes; l++) {
      out[2 * (at[l] + k * step)] = re[k * FFT_LANES + l] * scale;
      out[2 * (at[l] + k * step) + 1] = im[k * FFT_LANES + l] * scale;
    }
}

/* The transform Z of the h numbers x[2j] + i x[2j+1] becomes that of x, X[0 .. h-1], in place; X[h]
 * and X[0] are real: X[h] is left as the imaginary part of element 0.
 * X[k] = (Z[k] + Z*[h-k]) / 2 - i w^k (Z[k] - Z*[h-k]) / 2. */
CLONES static void NAME(untie)(int64_t h, const double *w, T *re, T *im, int64_t step, int lanes) {
  for (int l = 0; l < lanes; l++) {
    T a = re[l], b = im[l];
    re[l] = a + b, im[l] = a - b;
  }
  for (int64_t k = 1; k <= h / 2; k++) {
    T c = (T)w[2 * k], d = (T)w[2 * k + 1], half = (T)0.5;
    T *ar = re + k * step, *ai = im + k * step, *br = re + (h - k) * step,
      *bi = im + (h - k) * step;
#pragma GCC ivdep
    for (int l = 0; l < lanes; l++) {
      T sr = half * (ar[l] + br[l]), si = half * (ai[l] - bi[l]);
      T dr = half * (ar[l] - br[l]), di = half * (ai[l] + bi[l]);
      T er = c * di + d * dr, ei = d * di - c * dr;
      ar[l] = sr + er, ai[l] = si + ei;
      br[l] = sr - er, bi[l] = ei - si;
    }
  }
}

/* Back, twice as large: Z[k] = X[k] + X*[h-k] + i w^-k (X[k] - X*[h-k]). */
CLONES static void NAME(tie)(int64_t h, const double *w, T *re, T *im, int64_t step, int lanes) {
  for (int l = 0; l < lanes; l++) {
    T a = re[l], b = im[l];
    re[l] = a + b, im[l] = a - b;
  }
  for (int64_t k = 1; k <= h / 2; k++) {
    T c = (T)w[2 * k], d = (T)w[2 * k + 1];
    T *ar = re + k * step, *ai = im + k * step, *br = re + (h - k) * step,
      *bi = im + (h - k) * step;
#pragma GCC ivdep
    for (int l = 0; l < lanes; l++) {
      T sr = ar[l] + br[l], si = ai[l] - bi[l], dr = ar[l] - br[l], di = ai[l] + bi[l];
      T er = d * dr - c * di, ei = c * dr + d * di;
      ar[l] = sr + er, ai[l] = si + ei;
      br[l] = sr - er, bi[l] = ei - si;
    }
  }
}

/* Element k of lane l, whose number is first + l, times w[k * width + first + l]. */
CLONES static void NAME(turn)(int64_t n, const T *restrict w, int64_t first, int lanes,
                              int64_t width, T *restrict re, T *restrict im) {
  for (int64_t k = 0; k < n; k++) {
    const T *v = w + 2 * (k * width + first);
    for (int l = 0; l < lanes; l++) {
      T a = re[k * FFT_LANES + l], b = im[k * FFT_LANES + l];
      re[k * FFT_LANES + l] = a * v[2 * l] - b * v[2 * l + 1];
      im[k * FFT_LANES + l] = a * v[2 * l + 1] + b * v[2 * l];
    }
  }
}

/* Elements 0 and h of what untie made: both are real. */
static void NAME(ends)(T *out, int64_t h, T last) {
  out[1] = 0;
  out[2 * h] = last;
  out[2 * h + 1] = 0;
}

/* FFT_LANES lines from `first` on; those there are not repeat the last. */
static void NAME(lines)(const Job *j, int64_t first, T *x, T *y) {
  const Fft *f = j->f;
  int64_t n = fft_length(f), in_at[FFT_LANES], out_at[FFT_LANES];
  int lanes = (int)MIN(FFT_LANES, j->count - first);
  for (int l = 0; l < FFT_LANES; l++) {
    int64_t i = first + MIN(l, lanes - 1);
    in_at[l] = line_begin(&j->from, i);
    out_at[l] = line_begin(&j->to, i);
  }
  bool in_side = side_by_side(&j->from, first, lanes),
       out_side = side_by_side(&j->to, first, lanes);
  int64_t size = n * FFT_LANES;
  T *re = x, *im = x + size;
  const T *in = j->in;
  bool odd = j->form != COMPLEX && j->length % 2;
  if (odd && j->form == FROM_REAL) {
    for (int64_t k = 0; k < n; k++)
      for (int l = 0; l < FFT_LANES; l++)
        re[k * FFT_LANES + l] = in[in_at[l] + k], im[k * FFT_LANES + l] = 0;
  } else {
    NAME(load)(in, in_at, j->from.inner, in_side, odd ? n / 2 + 1 : n, re, im);
  }
  if (odd && j->form == TO_REAL) { /* the other half: the conjugates */
    for (int l = 0; l < FFT_LANES; l++) im[l] = 0;
    for (int64_t k = n / 2 + 1; k < n; k++)
      for (int l = 0; l < FFT_LANES; l++) {
        re[k * FFT_LANES + l] = re[(n - k) * FFT_LANES + l];
        im[k * FFT_LANES + l] = -im[(n - k) * FFT_LANES + l];
      }
  } else if (j->form == TO_REAL) {
    for (int l = 0; l < FFT_LANES; l++) im[l] = in[2 * (in_at[l] + n)];
    NAME(tie)(n, j->untie, re, im, FFT_LANES, FFT_LANES);
  }
  T *z = fft_forward(f, x, y, j->inverse), scale = (T)j->scale;
  re = z, im = z + size;
  if (j->turn && j->inverse) NAME(turn)(n, j->turn, first, lanes, j->from.inner, im, re);
  else if (j->turn) NAME(turn)(n, j->turn, first, lanes, j->from.inner, re, im);
  T *out = j->out;
  if (odd && j->form == TO_REAL) {
    for (int64_t k = 0; k < n; k++)
      for (int l = 0; l < lanes; l++) out[out_at[l] + k] = re[k * FFT_LANES + l] * scale;
    return;
  }
  bool even = j->form == FROM_REAL && !odd;
  if (even) NAME(untie)(n, j->untie, re, im, FFT_LANES, FFT_LANES);
  NAME(store)(out, out_at, lanes, j->to.inner, out_side, odd ? n / 2 + 1 : n, re, im, scale);
  for (int l = 0; l < lanes && even; l++) NAME(ends)(out + 2 * out_at[l], n, im[l]);
}

/* One line of Job j as dense complex numbers; the rest of what an axis of real lines wants. */
static void NAME(line_in)(const Axis *a, const Job *j, int64_t begin, T *x) {
  int64_t n = a->n, step = j->from.inner;
  bool odd = a->form != COMPLEX && a->length % 2;
  const T *in = j->in;
  if (odd && a->form == FROM_REAL) {
    for (int64_t k = 0; k < n; k++) x[2 * k] = in[begin + k], x[2 * k + 1] = 0;
    return;
  }
  int64_t there = odd ? n / 2 + 1 : n;
  for (int64_t k = 0; k < there; k++)
    x[2 * k] = in[2 * (begin + k * step)], x[2 * k + 1] = in[2 * (begin + k * step) + 1];
  if (odd) { /* the other half: the conjugates */
    x[1] = 0;
    for (int64_t k = there; k < n; k++)
      x[2 * k] = x[2 * (n - k)], x[2 * k + 1] = -x[2 * (n - k) + 1];
  } else if (a->form == TO_REAL) {
    x[1] = in[2 * (begin + n * step)];
    NAME(tie)(n, a->untie, x, x + 1, 2, 1);
  }
}

static void NAME(line_out)(const Axis *a, const Job *j, int64_t begin, T *x) {
  int64_t n = a->n, step = j->to.inner, there = n;
  bool odd = a->form != COMPLEX && a->length % 2;
  T *out = j->out;
  if (odd && a->form == TO_REAL) {
    for (int64_t k = 0; k < n; k++) out[begin + k] = x[2 * k];
    return;
  }
  if (odd) {
    there = n / 2 + 1;
  } else if (a->form == FROM_REAL) {
    NAME(untie)(n, a->untie, x, x + 1, 2, 1);
    NAME(ends)(x, n, x[1]);
    there = n + 1;
  }
  for (int64_t k = 0; k < there; k++)
    out[2 * (begin + k * step)] = x[2 * k], out[2 * (begin + k * step) + 1] = x[2 * k + 1];
}

CLONES static void NAME(times)(int64_t n, const T *w, const T *x, bool turn_x, T *y, bool turn_y,
                               T scale) {
  for (int64_t k = 0; k < n; k++) {
    T a = x[2 * k + turn_x], b = x[2 * k + !turn_x], c = w[2 * k], d = w[2 * k + 1];
    y[2 * k + turn_y] = (a * c - b * d) * scale;
    y[2 * k + !turn_y] = (a * d + b * c) * scale;
  }
}
