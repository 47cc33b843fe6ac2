/* Lines that are matrices (k_fft.c), for one type. The includer defines T, NAME and WIDE. */

/* One line of FftJob j as dense complex numbers; the rest of what an axis of real lines wants. */
static void NAME(line_in)(const Axis *a, const FftJob *j, int64_t begin, T *x) {
  int64_t n = a->n, step = j->from.inner;
  bool odd = a->form != FFT_COMPLEX && a->length % 2;
  const T *in = j->in;
  if (odd && a->form == FFT_FROM_REAL) {
    for (int64_t k = 0; k < n; k++) x[2 * k] = in[begin + k], x[2 * k + 1] = 0;
    return;
  }
  if (a->form == FFT_TO_REAL && !odd) {
    fft_code()->tie[WIDE](n, a->untie, in + 2 * begin, x);
    return;
  }
  int64_t there = odd ? n / 2 + 1 : n;
  for (int64_t k = 0; k < there; k++)
    x[2 * k] = in[2 * (begin + k * step)], x[2 * k + 1] = in[2 * (begin + k * step) + 1];
  if (odd) { /* the other half: the conjugates */
    x[1] = 0;
    for (int64_t k = there; k < n; k++)
      x[2 * k] = x[2 * (n - k)], x[2 * k + 1] = -x[2 * (n - k) + 1];
  }
}

static void NAME(line_out)(const Axis *a, const FftJob *j, int64_t begin, T *x) {
  int64_t n = a->n, step = j->to.inner, there = n;
  bool odd = a->form != FFT_COMPLEX && a->length % 2;
  T *out = j->out;
  if (odd && a->form == FFT_TO_REAL) {
    for (int64_t k = 0; k < n; k++) out[begin + k] = x[2 * k];
    return;
  }
  if (odd) {
    there = n / 2 + 1;
  } else if (a->form == FFT_FROM_REAL) {
    fft_code()->untie[WIDE](n, a->untie, x, out + 2 * begin);
    return;
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
