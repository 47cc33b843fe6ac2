/* The passes of fft.c for one type. The includer defines T and NAME. Planar: real parts, imaginary
 * parts; m = elements of the present length / radix, s = stride in elements times lanes, w the roots
 * of the pass, (radix - 1) pairs for each of the m. */

CLONES static void NAME(pass2)(int64_t m, int64_t s, const T *restrict xr, const T *restrict xi,
                               T *restrict yr, T *restrict yi, const T *restrict w) {
  for (int64_t p = 0; p < m; p++, w += 2) {
    T wr = w[0], wi = w[1];
    const T *ar = xr + p * s, *ai = xi + p * s, *br = ar + m * s, *bi = ai + m * s;
    T *cr = yr + 2 * p * s, *ci = yi + 2 * p * s, *dr = cr + s, *di = ci + s;
#pragma GCC ivdep
    for (int64_t q = 0; q < s; q++) {
      T er = ar[q] - br[q], ei = ai[q] - bi[q];
      cr[q] = ar[q] + br[q];
      ci[q] = ai[q] + bi[q];
      dr[q] = er * wr - ei * wi;
      di[q] = er * wi + ei * wr;
    }
  }
}

CLONES static void NAME(pass3)(int64_t m, int64_t s, const T *restrict xr, const T *restrict xi,
                               T *restrict yr, T *restrict yi, const T *restrict w) {
  const T half = (T)0.5, h = (T)0.86602540378443864676;
  for (int64_t p = 0; p < m; p++, w += 4) {
    const T *ar = xr + p * s, *ai = xi + p * s, *br = ar + m * s, *bi = ai + m * s,
            *cr = br + m * s, *ci = bi + m * s;
    T *pr = yr + 3 * p * s, *pi = yi + 3 * p * s, *qr = pr + s, *qi = pi + s, *rr = qr + s,
      *ri = qi + s;
    T w1r = w[0], w1i = w[1], w2r = w[2], w2i = w[3];
#pragma GCC ivdep
    for (int64_t q = 0; q < s; q++) {
      T tr = br[q] + cr[q], ti = bi[q] + ci[q], dr = h * (br[q] - cr[q]), di = h * (bi[q] - ci[q]);
      T er = ar[q] - half * tr, ei = ai[q] - half * ti;
      pr[q] = ar[q] + tr;
      pi[q] = ai[q] + ti;
      T ur = er + di, ui = ei - dr, vr = er - di, vi = ei + dr;
      qr[q] = ur * w1r - ui * w1i;
      qi[q] = ur * w1i + ui * w1r;
      rr[q] = vr * w2r - vi * w2i;
      ri[q] = vr * w2i + vi * w2r;
    }
  }
}

CLONES static void NAME(pass4)(int64_t m, int64_t s, const T *restrict xr, const T *restrict xi,
                               T *restrict yr, T *restrict yi, const T *restrict w) {
  for (int64_t p = 0; p < m; p++, w += 6) {
    const T *ar = xr + p * s, *ai = xi + p * s, *br = ar + m * s, *bi = ai + m * s,
            *cr = br + m * s, *ci = bi + m * s, *dr = cr + m * s, *di = ci + m * s;
    T *y0r = yr + 4 * p * s, *y0i = yi + 4 * p * s, *y1r = y0r + s, *y1i = y0i + s, *y2r = y1r + s,
      *y2i = y1i + s, *y3r = y2r + s, *y3i = y2i + s;
    T w1r = w[0], w1i = w[1], w2r = w[2], w2i = w[3], w3r = w[4], w3i = w[5];
#pragma GCC ivdep
    for (int64_t q = 0; q < s; q++) {
      T sr = ar[q] + cr[q], si = ai[q] + ci[q], tr = ar[q] - cr[q], ti = ai[q] - ci[q];
      T ur = br[q] + dr[q], ui = bi[q] + di[q], vr = br[q] - dr[q], vi = bi[q] - di[q];
      y0r[q] = sr + ur;
      y0i[q] = si + ui;
      T er = tr + vi, ei = ti - vr, fr = sr - ur, fi = si - ui, gr = tr - vi, gi = ti + vr;
      y1r[q] = er * w1r - ei * w1i;
      y1i[q] = er * w1i + ei * w1r;
      y2r[q] = fr * w2r - fi * w2i;
      y2i[q] = fr * w2i + fi * w2r;
      y3r[q] = gr * w3r - gi * w3i;
      y3i[q] = gr * w3i + gi * w3r;
    }
  }
}

CLONES static void NAME(pass5)(int64_t m, int64_t s, const T *restrict xr, const T *restrict xi,
                               T *restrict yr, T *restrict yi, const T *restrict w) {
  const T c1 = (T)0.30901699437494742410, c2 = (T)-0.80901699437494742410,
          s1 = (T)0.95105651629515357212, s2 = (T)0.58778525229247312917;
  for (int64_t p = 0; p < m; p++, w += 8) {
    const T *ar = xr + p * s, *ai = xi + p * s, *br = ar + m * s, *bi = ai + m * s,
            *cr = br + m * s, *ci = bi + m * s, *dr = cr + m * s, *di = ci + m * s,
            *er = dr + m * s, *ei = di + m * s;
    T * or = yr + 5 * p * s, *oi = yi + 5 * p * s;
#pragma GCC ivdep
    for (int64_t q = 0; q < s; q++) {
      T t1r = br[q] + er[q], t1i = bi[q] + ei[q], t4r = br[q] - er[q], t4i = bi[q] - ei[q];
      T t2r = cr[q] + dr[q], t2i = ci[q] + di[q], t3r = cr[q] - dr[q], t3i = ci[q] - di[q];
      T a1r = ar[q] + c1 * t1r + c2 * t2r, a1i = ai[q] + c1 * t1i + c2 * t2i;
      T a2r = ar[q] + c2 * t1r + c1 * t2r, a2i = ai[q] + c2 * t1i + c1 * t2i;
      T b1r = s1 * t4i + s2 * t3i, b1i = -s1 * t4r - s2 * t3r;
      T b2r = s2 * t4i - s1 * t3i, b2i = s1 * t3r - s2 * t4r;
      or [q] = ar[q] + t1r + t2r;
      oi[q] = ai[q] + t1i + t2i;
      T ur = a1r + b1r, ui = a1i + b1i;
      or [q + s] = ur * w[0] - ui * w[1];
      oi[q + s] = ur * w[1] + ui * w[0];
      ur = a2r + b2r, ui = a2i + b2i;
      or [q + 2 * s] = ur * w[2] - ui * w[3];
      oi[q + 2 * s] = ur * w[3] + ui * w[2];
      ur = a2r - b2r, ui = a2i - b2i;
      or [q + 3 * s] = ur * w[4] - ui * w[5];
      oi[q + 3 * s] = ur * w[5] + ui * w[4];
      ur = a1r - b1r, ui = a1i - b1i;
      or [q + 4 * s] = ur * w[6] - ui * w[7];
      oi[q + 4 * s] = ur * w[7] + ui * w[6];
    }
  }
}

/* Any odd radix by its definition, elements k and r - k together; roots: r pairs. */
CLONES static void NAME(pass_any)(int64_t r, int64_t m, int64_t s, const T *restrict xr,
                                  const T *restrict xi, T *restrict yr, T *restrict yi,
                                  const T *restrict w, const T *restrict roots) {
  int64_t step = m * s;
  for (int64_t p = 0; p < m; p++, w += 2 * (r - 1))
    for (int64_t q0 = 0; q0 < s; q0 += FFT_LANES) {
      const T *ar = xr + p * s + q0, *ai = xi + p * s + q0;
      T * or = yr + r * p * s + q0, *oi = yi + r * p * s + q0;
      for (int64_t j = 0; j <= r / 2; j++) {
        T er[FFT_LANES], ei[FFT_LANES], fr[FFT_LANES] = {0}, fi[FFT_LANES] = {0};
        for (int l = 0; l < FFT_LANES; l++) er[l] = ar[l], ei[l] = ai[l];
        for (int64_t k = 1, t = j; k <= r / 2; k++, t += j, t = t < r ? t : t - r) {
          const T *br = ar + k * step, *bi = ai + k * step, *cr = ar + (r - k) * step,
                  *ci = ai + (r - k) * step;
          T c = roots[2 * t], d = roots[2 * t + 1];
          for (int l = 0; l < FFT_LANES; l++) {
            er[l] += c * (br[l] + cr[l]);
            ei[l] += c * (bi[l] + ci[l]);
            fr[l] -= d * (bi[l] - ci[l]);
            fi[l] += d * (br[l] - cr[l]);
          }
        }
        for (int back = 0; back < (j ? 2 : 1); back++) {
          int64_t o = back ? r - j : j;
          T wr = o ? w[2 * o - 2] : 1, wi = o ? w[2 * o - 1] : 0, sign = back ? -1 : 1;
          for (int l = 0; l < FFT_LANES; l++) {
            T ur = er[l] + sign * fr[l], ui = ei[l] + sign * fi[l];
            or [o * s + l] = ur * wr - ui * wi;
            oi[o * s + l] = ur * wi + ui * wr;
          }
        }
      }
    }
}

static void NAME(pass)(const Pass *a, const T *xr, const T *xi, T *yr, T *yi) {
  const T *w = a->w;
  switch (a->radix) {
  case 2: NAME(pass2)(a->m, a->s, xr, xi, yr, yi, w); break;
  case 3: NAME(pass3)(a->m, a->s, xr, xi, yr, yi, w); break;
  case 4: NAME(pass4)(a->m, a->s, xr, xi, yr, yi, w); break;
  case 5: NAME(pass5)(a->m, a->s, xr, xi, yr, yi, w); break;
  default: NAME(pass_any)(a->radix, a->m, a->s, xr, xi, yr, yi, w, a->roots); break;
  }
}

/* y = x times the n numbers at w (pairs), each for all lanes, which conj: their conjugates. */
CLONES static void NAME(times)(int64_t n, const T *restrict w, const T *xr, const T *xi, T *yr,
                               T *yi) {
  for (int64_t k = 0; k < n; k++)
    for (int l = 0; l < FFT_LANES; l++) {
      T a = xr[k * FFT_LANES + l], b = xi[k * FFT_LANES + l];
      yr[k * FFT_LANES + l] = a * w[2 * k] - b * w[2 * k + 1];
      yi[k * FFT_LANES + l] = a * w[2 * k + 1] + b * w[2 * k];
    }
}

static void *NAME(forward)(const Fft *f, T *x, T *y, bool swapped) {
  int64_t size = f->n * FFT_LANES;
  if (f->longer) { /* chirp, convolution with the filter, chirp; the inverse with parts swapped */
    int64_t big = f->longer->n * FFT_LANES;
    int re = swapped, im = !swapped;
    NAME(times)(f->n, f->chirp, x + re * size, x + im * size, y, y + big);
    memset(y + size, 0, sizeof(T) * (size_t)(big - size));
    memset(y + big + size, 0, sizeof(T) * (size_t)(big - size));
    T *a = NAME(forward)(f->longer, y, x, false), *b = a == y ? x : y;
    NAME(times)(f->longer->n, f->filter, a, a + big, a, a + big);
    T *c = NAME(forward)(f->longer, a, b, true), *d = c == x ? y : x;
    NAME(times)(f->n, f->chirp, c, c + big, d + re * size, d + im * size);
    return d;
  }
  for (int i = 0; i < f->n_passes; i++) {
    const T *xr = x + swapped * size, *xi = x + !swapped * size;
    NAME(pass)(&f->pass[i], xr, xi, y + swapped * size, y + !swapped * size);
    T *t = x;
    x = y;
    y = t;
  }
  return x;
}
