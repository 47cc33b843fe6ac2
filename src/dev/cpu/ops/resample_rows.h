/* resample_rows.c for one width of vectors. The includer defines FN (target attributes), LANES, NAME
 * and SPREAD(v, index): v's elements that the lanes of index name. */
typedef float NAME(V) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t NAME(I) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#define V NAME(V)
#define AT(p) (*(const V *)(p))
#define PUT(p) (*(V *)(p))

FN static void NAME(sum)(const float *const *rows, const float *w, int64_t step, int64_t n,
                         int64_t elements, float *out) {
  int64_t p = 0;
  for (; p + 4 * LANES <= elements; p += 4 * LANES) {
    V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (int64_t k = 0; k < n; k++) {
      const float *x = rows[k] + p;
      s0 += w[k * step] * AT(x);
      s1 += w[k * step] * AT(x + LANES);
      s2 += w[k * step] * AT(x + 2 * LANES);
      s3 += w[k * step] * AT(x + 3 * LANES);
    }
    PUT(out + p) = s0;
    PUT(out + p + LANES) = s1;
    PUT(out + p + 2 * LANES) = s2;
    PUT(out + p + 3 * LANES) = s3;
  }
  for (; p + LANES <= elements; p += LANES) {
    V s = {0};
    for (int64_t k = 0; k < n; k++) s += w[k * step] * AT(rows[k] + p);
    PUT(out + p) = s;
  }
  for (; p < elements; p++) {
    float s = 0;
    for (int64_t k = 0; k < n; k++) s += w[k * step] * rows[k][p];
    out[p] = s;
  }
}

FN static void NAME(places)(const Band *b, const float *row, int64_t inner, float *out) {
  for (int64_t j = 0; j < b->m; j++, out += inner) {
    const float *x = row + b->low[j] * inner, *w = b->w + b->low[j] * b->m + j;
    int64_t n = b->high[j] - b->low[j], m = b->m, p = 0;
    for (; p + 2 * LANES <= inner; p += 2 * LANES) {
      V s = {0}, t = {0};
      for (int64_t k = 0; k < n; k++) {
        s += w[k * m] * AT(x + k * inner + p);
        t += w[k * m] * AT(x + k * inner + p + LANES);
      }
      PUT(out + p) = s;
      PUT(out + p + LANES) = t;
    }
    while (p < inner) { /* the last vector again, as far as need be */
      p = MIN(p, inner - LANES);
      V s = {0};
      for (int64_t k = 0; k < n; k++) s += w[k * m] * AT(x + k * inner + p);
      PUT(out + p) = s;
      p += LANES;
    }
  }
}

FN static void NAME(vectors)(const Vectors *v, const float *row, float *out) {
  for (int64_t b = 0; b < v->count; b++, out += LANES) {
    const float *w = v->w + v->at[b] * LANES;
    int64_t low = v->low[b], n = v->high[b] - low, left = v->elements - b * LANES;
    V s = {0};
    if (v->inner == 1) {
      for (int64_t i = 0; i < n; i++) s += row[low + i] * AT(w + i * LANES);
    } else {
      NAME(I) index = *(const NAME(I) *)(v->index + b * LANES);
      const float *x = row + low * v->inner;
      for (int64_t i = 0; i < n; i++, x += v->inner) s += SPREAD(AT(x), index) * AT(w + i * LANES);
    }
    if (left >= LANES) PUT(out) = s;
    else memcpy(out, &s, sizeof *out * (size_t)left);
  }
}

static const ResampleRows NAME(rows) = {LANES, NAME(sum), NAME(places), NAME(vectors)};

#undef V
#undef AT
#undef PUT
#undef FN
#undef LANES
#undef NAME
#undef SPREAD
