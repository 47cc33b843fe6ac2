/* npy: numpy's array files. The header of .npy is a Python dict literal of three known keys, so it
 * is found by key, not parsed as Python. .npz is read through the zip's central directory (the
 * local headers of numpy hold zip64 placeholders).
 */
#include "base/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

static uint16_t le16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint32_t le32(const uint8_t *p) { return (uint32_t)le16(p) | (uint32_t)le16(p + 2) << 16; }
static uint64_t le64(const uint8_t *p) { return (uint64_t)le32(p) | (uint64_t)le32(p + 4) << 32; }

static const struct {
  char kind;
  int bytes;
  DType dtype;
} kinds[] = {
    {'b', 1, DT_I1},  {'i', 1, DT_I8},  {'i', 2, DT_I16}, {'i', 4, DT_I32},   {'i', 8, DT_I64},
    {'u', 1, DT_U8},  {'u', 2, DT_U16}, {'u', 4, DT_U32}, {'u', 8, DT_U64},   {'f', 2, DT_F16},
    {'f', 4, DT_F32}, {'f', 8, DT_F64}, {'c', 8, DT_C64}, {'c', 16, DT_C128}, {'V', 1, DT_U8},
    {'V', 2, DT_U16}, {'V', 4, DT_U32}, {'V', 8, DT_U64}, {'f', 1, DT_U8}, /* ml_dtypes' e5m2 */
};

bool npy_holds(DType got, DType want) {
  for (int i = 0; i < COUNT_OF(kinds); i++)
    if (kinds[i].dtype == want) return got == want;
  return dtype_bytes(got) == dtype_bytes(want);
}

/* ---- .npy ------------------------------------------------------------------------------------ */

/* The text after 'key': in the header dict, or NULL. */
static const char *dict_value(const char *header, const char *key) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, "'%s'", key);
  const char *p = strstr(header, quoted);
  if (!p) return NULL;
  p += strlen(quoted);
  while (*p == ' ' || *p == ':') p++;
  return p;
}

static Err *parse_shape(const char *p, Npy *out) {
  if (*p != '(') return err_new(ERR_INVALID, "npy: shape is not a tuple");
  p++;
  out->count = 1;
  for (;;) {
    while (*p == ' ' || *p == ',') p++;
    if (*p == ')') return NULL;
    char *end;
    long long v = strtoll(p, &end, 10);
    if (end == p || v < 0) return err_new(ERR_INVALID, "npy: bad number in the shape");
    if (out->rank == NPY_MAX_RANK)
      return err_new(ERR_INVALID, "npy: more than %d dimensions", NPY_MAX_RANK);
    out->dims[out->rank++] = v;
    if (mul_overflows(out->count, v, &out->count))
      return err_new(ERR_INVALID, "npy: size overflows");
    p = *end == 'L' ? end + 1 : end;
  }
}

static void swap_bytes(uint8_t *p, size_t n, size_t word) {
  for (size_t i = 0; i + word <= n; i += word)
    for (size_t j = 0; j < word / 2; j++) {
      uint8_t t = p[i + j];
      p[i + j] = p[i + word - 1 - j];
      p[i + word - 1 - j] = t;
    }
}

/* Fortran order to row-major. */
static void rearrange(const Npy *a, const uint8_t *from, uint8_t *to, size_t bytes) {
  int64_t at[NPY_MAX_RANK] = {0};
  for (int64_t i = 0; i < a->count; i++) {
    int64_t j = 0;
    for (int d = a->rank - 1; d >= 0; d--) j = j * a->dims[d] + at[d];
    memcpy(to + (size_t)i * bytes, from + (size_t)j * bytes, bytes);
    for (int d = a->rank - 1; d >= 0 && ++at[d] == a->dims[d]; d--) at[d] = 0;
  }
}

Err *npy_parse(const void *bytes, size_t n, Npy *out) {
  const uint8_t *p = bytes;
  memset(out, 0, sizeof *out);
  if (n < 10 || memcmp(p, "\x93NUMPY", 6)) return err_new(ERR_INVALID, "not a .npy file");
  size_t head = p[6] == 1 ? 10 : 12;
  if (n < head) return err_new(ERR_INVALID, "npy: truncated header");
  size_t len = p[6] == 1 ? le16(p + 8) : le32(p + 8);
  if (len > n - head) return err_new(ERR_INVALID, "npy: truncated header");
  char *header = xstrndup((const char *)p + head, len);
  Err *e = NULL;
  const char *descr = dict_value(header, "descr"), *order = dict_value(header, "fortran_order");
  const char *shape = dict_value(header, "shape");
  if (!descr || !order || !shape || descr[0] != '\'' || strlen(descr) < 4) {
    e = err_new(ERR_INVALID, "npy: the header lacks descr, fortran_order or shape");
    goto out;
  }
  char endian = descr[1];
  const char *kind = strchr("<>|=", endian) ? descr + 2 : descr + 1;
  int width = atoi(kind + 1);
  for (int i = 0; i < COUNT_OF(kinds); i++)
    if (kinds[i].kind == *kind && kinds[i].bytes == width) out->dtype = kinds[i].dtype;
  if (!out->dtype) {
    e = err_hint(
        err_new(ERR_INVALID, "npy: elements of type %.*s", (int)strcspn(descr, ",}"), descr),
        "numbers and booleans can be read: x.astype('float32')");
    goto out;
  }
  if ((e = parse_shape(shape, out))) goto out;
  int64_t size;
  if (mul_overflows(out->count, width, &size) || (size_t)size > n - head - len) {
    e = err_new(ERR_INVALID, "npy: truncated data");
    goto out;
  }
  out->data = xmalloc((size_t)size);
  const uint8_t *from = p + head + len;
  if (!strncmp(order, "True", 4) && out->rank > 1) rearrange(out, from, out->data, (size_t)width);
  else if (size) memcpy(out->data, from, (size_t)size);
  if (endian == '>')
    swap_bytes(out->data, (size_t)size, (size_t)(*kind == 'c' ? width / 2 : width));
  out->name = xstrdup("");
out:
  free(header);
  if (e) npy_free(out);
  return e;
}

void npy_free(Npy *a) {
  free(a->name);
  free(a->data);
  memset(a, 0, sizeof *a);
}

static void npy_emit(Buf *b, const Npy *a) {
  char kind = 'u';
  int width = dtype_bytes(a->dtype);
  for (int i = COUNT_OF(kinds) - 1; i >= 0; i--) /* the first */
    if (kinds[i].dtype == a->dtype) kind = kinds[i].kind;
  Buf h = {0};
  buf_printf(&h, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (", width == 1 ? '|' : '<',
             kind, width);
  for (int d = 0; d < a->rank; d++)
    buf_printf(&h, "%lld,%s", (long long)a->dims[d], d + 1 < a->rank ? " " : "");
  buf_cstr(&h, "), }");
  while ((10 + h.n + 1) % 64) buf_byte(&h, ' ');
  buf_byte(&h, '\n');
  bool v2 = h.n > 65535;
  buf_add(b, v2 ? "\x93NUMPY\x02\x00" : "\x93NUMPY\x01\x00", 8);
  for (int i = 0; i < (v2 ? 4 : 2); i++) buf_byte(b, (int)(h.n >> (8 * i) & 255));
  buf_add(b, h.p, h.n);
  buf_free(&h);
  buf_add(b, a->data, (size_t)a->count * (size_t)width);
}

/* ---- .npz ------------------------------------------------------------------------------------ */

static Err *inflate_raw(const uint8_t *p, size_t n, uint8_t *out, size_t out_n) {
  z_stream z = {0};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
    return err_new(ERR_INTERNAL, "npz: zlib does not start");
  int rc = Z_OK;
  size_t in_at = 0, out_at = 0;
  while (rc == Z_OK) { /* zlib counts in 32 bits */
    z.next_in = (Bytef *)(uintptr_t)(p + in_at);
    z.avail_in = (uInt)MIN(n - in_at, (size_t)1 << 30);
    z.next_out = out + out_at;
    z.avail_out = (uInt)MIN(out_n - out_at, (size_t)1 << 30);
    uInt in0 = z.avail_in, out0 = z.avail_out;
    rc = inflate(&z, Z_NO_FLUSH);
    in_at += in0 - z.avail_in;
    out_at += out0 - z.avail_out;
    if (rc == Z_OK && in0 == z.avail_in && out0 == z.avail_out) break;
  }
  inflateEnd(&z);
  if (rc != Z_STREAM_END || out_at != out_n)
    return err_new(ERR_INVALID, "npz: damaged deflate stream");
  return NULL;
}

typedef struct Entry {
  Str name;
  int method;
  uint32_t crc;
  uint64_t packed, size, at;
} Entry;

/* Reads one central directory entry at p (limit n); *used gets its length. */
static Err *read_entry(const uint8_t *p, size_t n, Entry *e, size_t *used) {
  if (n < 46 || le32(p) != 0x02014b50) return err_new(ERR_INVALID, "npz: damaged directory");
  size_t name = le16(p + 28), extra = le16(p + 30), comment = le16(p + 32);
  *used = 46 + name + extra + comment;
  if (*used > n) return err_new(ERR_INVALID, "npz: damaged directory");
  *e = (Entry){.name = {(const char *)p + 46, name},
               .method = le16(p + 10),
               .crc = le32(p + 16),
               .packed = le32(p + 20),
               .size = le32(p + 24),
               .at = le32(p + 42)};
  const uint8_t *x = p + 46 + name;
  for (size_t i = 0; i + 4 <= extra;) {
    size_t len = le16(x + i + 2), at = i + 4;
    if (at + len > extra) break;
    if (le16(x + i) == 1) { /* zip64: those of size, packed, offset that are all ones */
      size_t end = at + len;
      uint64_t *fields[] = {&e->size, &e->packed, &e->at};
      for (int f = 0; f < 3; f++)
        if (*fields[f] == 0xffffffff && at + 8 <= end) *fields[f] = le64(x + at), at += 8;
    }
    i += 4 + len;
  }
  return NULL;
}

/* The array in a member's bytes, which must be those that were written. */
static Err *read_checked(const uint8_t *p, size_t n, const Entry *m, Npy *out) {
  uint32_t crc = (uint32_t)crc32_z(0, p, n);
  if (crc == m->crc) return npy_parse(p, n, out);
  return err_hint(
      err_new(ERR_DATA_LOSS, "npz: damaged: CRC-32 %08x, %08x where it was written", crc, m->crc),
      "write or copy the file again");
}

static Err *read_member(const uint8_t *p, size_t n, const Entry *m, Npy *out) {
  if (m->at > n || n - m->at < 30 || le32(p + m->at) != 0x04034b50)
    return err_new(ERR_INVALID, "npz: damaged member");
  uint64_t data = m->at + 30 + le16(p + m->at + 26) + le16(p + m->at + 28);
  if (data > n || m->packed > n - data) return err_new(ERR_INVALID, "npz: truncated member");
  if (m->method == 0) return read_checked(p + data, m->packed, m, out);
  if (m->method != 8) return err_new(ERR_INVALID, "npz: compression method %d", m->method);
  if (m->size / 1100 > m->packed + 1) return err_new(ERR_INVALID, "npz: impossible member size");
  uint8_t *raw = xmalloc(m->size);
  Err *e = inflate_raw(p + data, m->packed, raw, m->size);
  if (!e) e = read_checked(raw, m->size, m, out);
  free(raw);
  return e;
}

Err *npz_parse(const void *bytes, size_t n, Npz *out) {
  const uint8_t *p = bytes;
  memset(out, 0, sizeof *out);
  size_t end = n < 22 ? 0 : n - 22;
  while (n >= 22 && end && n - end < 70000 && le32(p + end) != 0x06054b50) end--;
  if (n < 22 || le32(p + end) != 0x06054b50)
    return n >= 4 && le32(p) == 0x04034b50
               ? err_new(ERR_DATA_LOSS, "the .npz (zip) file is cut short")
               : err_hint(err_new(ERR_INVALID, "not a .npz (zip) file"),
                          "write it with numpy.savez(FILE, in0=..., in1=...)");
  uint64_t count = le16(p + end + 10), dir = le32(p + end + 16);
  if (dir == 0xffffffff || count == 0xffff) {
    if (end < 20 || le32(p + end - 20) != 0x07064b50)
      return err_new(ERR_INVALID, "npz: damaged zip64 end");
    uint64_t at = le64(p + end - 12);
    if (at > n || n - at < 56 || le32(p + at) != 0x06064b50)
      return err_new(ERR_INVALID, "npz: damaged zip64 end");
    count = le64(p + at + 32);
    dir = le64(p + at + 48);
  }
  if (dir > n || count > n / 46) return err_new(ERR_INVALID, "npz: damaged directory");
  out->arrays = xcalloc(count ? count : 1, sizeof *out->arrays);
  Err *e = NULL;
  size_t at = dir;
  for (uint64_t i = 0; i < count && !e; i++) {
    Entry m;
    size_t used = 0;
    if ((e = read_entry(p + at, n - at, &m, &used))) break;
    at += used;
    if (!str_ends(m.name, ".npy")) continue;
    Npy *a = &out->arrays[out->n];
    if ((e = read_member(p, n, &m, a))) {
      e = err_wrap(e, "%.*s", STR_ARG(m.name));
      break;
    }
    free(a->name);
    a->name = xstrndup(m.name.p, m.name.n - 4);
    out->n++;
  }
  if (e) npz_free(out);
  return e;
}

Err *npz_read(const char *path, Npz *out) {
  Buf b = {0};
  TRY(file_read(path, &b));
  Err *e = npz_parse(b.p, b.n, out);
  buf_free(&b);
  return err_wrap(e, "%s", path);
}

const Npy *npz_find(const Npz *z, const char *name) {
  for (int i = 0; i < z->n; i++)
    if (!strcmp(z->arrays[i].name, name)) return &z->arrays[i];
  return NULL;
}

void npz_free(Npz *z) {
  for (int i = 0; i < z->n; i++) npy_free(&z->arrays[i]);
  free(z->arrays);
  memset(z, 0, sizeof *z);
}

static void put(Buf *b, uint64_t v, int bytes) {
  for (int i = 0; i < bytes; i++) buf_byte(b, (int)(v >> (8 * i) & 255));
}

/* The fields that local and central headers share, from "version needed" to the name's length. */
static void put_common(Buf *b, uint32_t crc, uint64_t size, size_t name_len) {
  put(b, 20, 2), put(b, 0, 2), put(b, 0, 2), put(b, 0, 2),
      put(b, 0x21, 2); /* stored, 1 January 1980 */
  put(b, crc, 4), put(b, size, 4), put(b, size, 4), put(b, name_len, 2);
}

Err *npz_write(const char *path, const Npy *arrays, int n) {
  Buf b = {0}, dir = {0}, body = {0};
  Err *e = NULL;
  for (int i = 0; i < n; i++) {
    body.n = 0;
    npy_emit(&body, &arrays[i]);
    if (body.n > 0xfffffff0u - b.n) {
      e = err_new(ERR_UNIMPLEMENTED, "npz: files over 4 GiB are not written");
      goto out;
    }
    char *name = xasprintf("%s.npy", arrays[i].name);
    uint32_t crc = (uint32_t)crc32(0, (const Bytef *)body.p, (uInt)body.n);
    put(&dir, 0x02014b50, 4), put(&dir, 20, 2);
    put_common(&dir, crc, body.n, strlen(name));
    put(&dir, 0, 2), put(&dir, 0, 2), put(&dir, 0, 2), put(&dir, 0, 2), put(&dir, 0, 4),
        put(&dir, b.n, 4);
    buf_cstr(&dir, name);
    put(&b, 0x04034b50, 4);
    put_common(&b, crc, body.n, strlen(name));
    put(&b, 0, 2);
    buf_cstr(&b, name);
    buf_add(&b, body.p, body.n);
    free(name);
  }
  size_t at = b.n;
  if (dir.n) buf_add(&b, dir.p, dir.n);
  put(&b, 0x06054b50, 4), put(&b, 0, 4), put(&b, (uint64_t)n, 2), put(&b, (uint64_t)n, 2);
  put(&b, dir.n, 4), put(&b, at, 4), put(&b, 0, 2);
  e = file_write(path, b.p, b.n);
out:
  buf_free(&b);
  buf_free(&dir);
  buf_free(&body);
  return e;
}
