/* Checkpoints as safetensors: u64 header length, JSON header padded with blanks to 8, raw
 * little-endian data. */
#include "train/train_priv.h"

#include "base/system.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const struct {
  DType type;
  const char *name;
} names[] = {{DT_F64, "F64"}, {DT_F32, "F32"},          {DT_F16, "F16"},       {DT_BF16, "BF16"},
             {DT_I64, "I64"}, {DT_I32, "I32"},          {DT_I16, "I16"},       {DT_I8, "I8"},
             {DT_U64, "U64"}, {DT_U32, "U32"},          {DT_U16, "U16"},       {DT_U8, "U8"},
             {DT_I1, "BOOL"}, {DT_F8E4M3FN, "F8_E4M3"}, {DT_F8E5M2, "F8_E5M2"}};

static size_t bytes_of(const NamedTensor *t) {
  size_t n = (size_t)dtype_bytes(t->type);
  for (int i = 0; i < t->rank; i++) n *= (size_t)t->dims[i];
  return n;
}

Err *safetensors_write(const char *path, int n, const NamedTensor *t, int n_meta,
                       const char *const *meta) {
  Buf h = {0};
  size_t at = 0;
  buf_byte(&h, '{');
  if (n_meta) {
    buf_cstr(&h, "\"__metadata__\":{");
    for (int i = 0; i < n_meta; i++) {
      if (i) buf_byte(&h, ',');
      buf_json_str(&h, meta[2 * i]);
      buf_byte(&h, ':');
      buf_json_str(&h, meta[2 * i + 1]);
    }
    buf_byte(&h, '}');
  }
  for (int i = 0; i < n; i++) {
    const char *type = NULL;
    for (int k = 0; k < COUNT_OF(names); k++)
      if (names[k].type == t[i].type) type = names[k].name;
    if (!type) {
      buf_free(&h);
      return err_new(ERR_UNIMPLEMENTED, "safetensors has no element type for %s ('%s')",
                     dtype_name(t[i].type), t[i].name);
    }
    if (i || n_meta) buf_byte(&h, ',');
    buf_json_str(&h, t[i].name);
    buf_printf(&h, ":{\"dtype\":\"%s\",\"shape\":[", type);
    for (int k = 0; k < t[i].rank; k++)
      buf_printf(&h, "%s%lld", k ? "," : "", (long long)t[i].dims[k]);
    buf_printf(&h, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes_of(&t[i]));
    at += bytes_of(&t[i]);
  }
  buf_byte(&h, '}');
  while (h.n % 8) buf_byte(&h, ' ');
  char *tmp = xasprintf("%s.part", path);
  FILE *f = fopen(tmp, "wb");
  uint64_t len = h.n;
  bool ok = f && fwrite(&len, 8, 1, f) == 1 && fwrite(h.p, 1, h.n, f) == h.n;
  for (int i = 0; i < n && ok; i++)
    ok = fwrite(t[i].data, 1, bytes_of(&t[i]), f) == bytes_of(&t[i]);
  if (f) ok &= fclose(f) == 0;
  ok = ok && !rename(tmp, path);
  Err *e = ok ? NULL : err_errno("cannot write '%s'", path);
  if (!ok) remove(tmp);
  free(tmp);
  buf_free(&h);
  return e;
}

static Err *read_entry(const cJSON *item, const char *data, size_t size, NamedTensor *t) {
  const cJSON *type = cJSON_GetObjectItemCaseSensitive(item, "dtype");
  const cJSON *shape = cJSON_GetObjectItemCaseSensitive(item, "shape");
  const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(item, "data_offsets");
  const cJSON *lo = cJSON_GetArrayItem(offsets, 0), *hi = cJSON_GetArrayItem(offsets, 1), *d;
  if (!cJSON_IsString(type) || !cJSON_IsArray(shape) || !cJSON_IsNumber(lo) || !cJSON_IsNumber(hi))
    return err_new(ERR_DATA_LOSS, "tensor '%s' has no dtype, shape or offsets", item->string);
  for (int k = 0; k < COUNT_OF(names); k++)
    if (!strcmp(names[k].name, type->valuestring)) t->type = names[k].type;
  if (!t->type)
    return err_new(ERR_UNIMPLEMENTED, "tensor '%s' has dtype %s", item->string, type->valuestring);
  int64_t count = dtype_bytes(t->type);
  cJSON_ArrayForEach(d, shape) {
    if (t->rank == COUNT_OF(t->dims) || !cJSON_IsNumber(d) || d->valuedouble < 0 ||
        d->valuedouble > 1e15 || mul_overflows(count, (int64_t)d->valuedouble, &count))
      return err_new(ERR_DATA_LOSS, "tensor '%s' has an impossible shape", item->string);
    t->dims[t->rank++] = (int64_t)d->valuedouble;
  }
  double a = lo->valuedouble, b = hi->valuedouble;
  if (a < 0 || b < a || b > (double)size || (int64_t)(b - a) != count)
    return err_new(ERR_DATA_LOSS, "tensor '%s': offsets do not fit its shape or the file",
                   item->string);
  t->name = xstrdup(item->string);
  t->data = xmalloc((size_t)count + 1);
  memcpy(t->data, data + (size_t)a, (size_t)count);
  return NULL;
}

const NamedTensor *safetensors_find(int n, const NamedTensor *t, const char *name) {
  for (int i = 0; i < n; i++)
    if (!strcmp(t[i].name, name)) return &t[i];
  return NULL;
}

/* The JSON header alone: a file of gigabytes is asked what it is. */
static cJSON *read_header(FILE *f) {
  uint64_t len = 0;
  struct stat st;
  if (fstat(fileno(f), &st) || fread(&len, 8, 1, f) != 1 || len > (uint64_t)MAX(8, st.st_size) - 8)
    return NULL;
  char *text = xmalloc(len + 1);
  cJSON *root = fread(text, 1, len, f) == len ? cJSON_ParseWithLength(text, len) : NULL;
  free(text);
  return root;
}

Err *safetensors_meta(const char *path, Meta *out) {
  FILE *f = fopen(path, "rb");
  if (!f) return err_errno("cannot open '%s'", path);
  cJSON *root = read_header(f);
  fclose(f);
  if (!cJSON_IsObject(root)) {
    cJSON_Delete(root);
    return err_new(ERR_DATA_LOSS, "'%s' is not a safetensors file", path);
  }
  const cJSON *item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(root, "__metadata__")) {
    if (cJSON_IsString(item)) meta_set(out, item->string, "%s", item->valuestring);
  }
  cJSON_Delete(root);
  return NULL;
}

Err *safetensors_read(const char *path, int *n, NamedTensor **out) {
  Buf b = {0};
  TRY(file_read(path, &b));
  uint64_t len = 0;
  if (b.n >= 8) memcpy(&len, b.p, 8);
  Err *e = NULL;
  cJSON *root = NULL;
  if (b.n < 8 || len > b.n - 8 || !(root = cJSON_ParseWithLength(b.p + 8, len)) ||
      !cJSON_IsObject(root))
    e = err_new(ERR_DATA_LOSS, "'%s' is not a safetensors file", path);
  VEC(NamedTensor) v = {0};
  const cJSON *item;
  if (!e) cJSON_ArrayForEach(item, root) {
      if (!strcmp(item->string, "__metadata__")) continue;
      NamedTensor t = {0};
      e = read_entry(item, b.p + 8 + len, b.n - 8 - len, &t);
      if (e) break;
      *vec_push(&v) = t;
    }
  cJSON_Delete(root);
  buf_free(&b);
  if (e) {
    safetensors_free(v.n, v.v);
    return err_wrap(e, "reading '%s'", path);
  }
  *n = v.n;
  *out = v.v;
  return NULL;
}

void safetensors_free(int n, NamedTensor *t) {
  for (int i = 0; i < n; i++) {
    free(t[i].name);
    free(t[i].data);
  }
  free(t);
}
