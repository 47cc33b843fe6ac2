/* Pictures in files: a folder of folders (one for each class), or a tar of webdataset (KEY.png or
 * KEY.jpg with KEY.cls beside it). They are decoded when they are needed, by the loader's threads. */
#include "train/data_priv.h"

#include "base/system.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Sample {
  char *name;           /* path; in a tar the member's name */
  const uint8_t *bytes; /* in a tar; NULL: in the file */
  size_t size;
  int32_t label;
} Sample;
typedef VEC(Sample) SampleVec;

typedef struct Files {
  SampleVec train, test;
  bool augment, whole;
  void *map; /* the tar */
  size_t map_size;
} Files;

enum { SEEN = 256 }; /* pictures that mean and deviation are of */

static void free_samples(SampleVec *v) {
  for (int i = 0; i < v->n; i++) free(v->v[i].name);
  vec_free(v);
}

static void free_files(Data *d) {
  Files *f = d->impl;
  free_samples(&f->train);
  free_samples(&f->test);
  if (f->map) munmap(f->map, f->map_size);
  free(f);
}

static Err *decode(const Data *d, const Sample *s, uint8_t *out) {
  Picture p;
  Err *e = s->bytes ? picture_decode(s->bytes, s->size, &p) : picture_read(s->name, &p);
  if (e) return s->bytes ? err_wrap(e, "'%s' of '%s'", s->name, d->name) : e;
  const int64_t *dims = d->fields[0].dims;
  picture_fit(&p, dims[0], dims[1], dims[2], out);
  picture_free(&p);
  return NULL;
}

static void mirror(const int64_t *dims, uint8_t *p) {
  for (int64_t y = 0; y < dims[0]; y++)
    for (int64_t x = 0; x < dims[1] / 2; x++)
      for (int64_t c = 0; c < dims[2]; c++) {
        uint8_t *a = p + (y * dims[1] + x) * dims[2] + c,
                *b = p + (y * dims[1] + dims[1] - 1 - x) * dims[2] + c, t = *a;
        *a = *b;
        *b = t;
      }
}

static Err *get_file(const Data *d, bool test, int64_t index, uint64_t rand, void *const *dst) {
  const Files *f = d->impl;
  const Sample *s = &(test ? &f->test : &f->train)->v[index];
  TRY(decode(d, s, dst[0]));
  if (f->augment && !test && rand & 1) mirror(d->fields[0].dims, dst[0]);
  *(int32_t *)dst[1] = s->label;
  return NULL;
}

/* ---- folders --------------------------------------------------------------------------------- */

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}
static int visible(const struct dirent *d) { return d->d_name[0] != '.'; }

static bool is_folder(const char *path) {
  struct stat s;
  return !stat(path, &s) && S_ISDIR(s.st_mode);
}

bool picture_named(const char *name) {
  const char *end = strrchr(name, '.');
  return end && (!strcasecmp(end, ".png") || !strcasecmp(end, ".jpg") || !strcasecmp(end, ".jpeg"));
}

/* The pictures of one class, in the order of names. With a `test` list one of each ten goes there. */
static void list_class(const char *folder, int label, SampleVec *train, SampleVec *test) {
  struct dirent **names;
  int n = scandir(folder, &names, visible, by_name), seen = 0;
  for (int i = 0; i < n; i++) {
    const char *name = names[i]->d_name;
    if (picture_named(name)) {
      SampleVec *to = test && data_held_out(seen++) ? test : train;
      *vec_push(to) = (Sample){.name = xasprintf("%s/%s", folder, name), .label = label};
    }
    free(names[i]);
  }
  if (n >= 0) free(names);
}

static Err *list_folder(const char *root, Buf *labels, bool grow, SampleVec *train,
                        SampleVec *test) {
  struct dirent **names;
  int n = scandir(root, &names, visible, by_name);
  if (n < 0) return err_errno("cannot open the folder '%s'", root);
  Err *e = NULL;
  for (int i = 0; i < n; i++) {
    char *path = xasprintf("%s/%s", root, names[i]->d_name);
    if (is_folder(path) && !e) {
      int label = data_class_of(labels, names[i]->d_name, grow);
      if (label < 0)
        e = err_new(ERR_INVALID, "class '%s' of '%s' is none of the training pictures",
                    names[i]->d_name, root);
      else list_class(path, label, train, test);
    }
    free(path);
    free(names[i]);
  }
  free(names);
  return e;
}

/* ROOT/train/CLASS and ROOT/test or val/CLASS; or ROOT/CLASS. */
static Err *list_root(const char *root, Files *f, Buf *labels, bool grow) {
  static const char *const tests[] = {"test", "val", "validation"};
  char *train = xasprintf("%s/train", root);
  if (!is_folder(train)) {
    free(train);
    return f->whole ? list_folder(root, labels, grow, &f->test, NULL)
                    : list_folder(root, labels, grow, &f->train, &f->test);
  }
  Err *e = NULL;
  char *test = NULL;
  for (int i = 0; i < 3 && !test; i++) {
    test = xasprintf("%s/%s", root, tests[i]);
    if (!is_folder(test)) free(test), test = NULL;
  }
  e = list_folder(train, labels, grow, &f->train, test ? NULL : &f->test);
  if (!e && test) e = list_folder(test, labels, false, &f->test, NULL);
  free(train);
  free(test);
  return e;
}

/* ---- tar ------------------------------------------------------------------------------------- */

static size_t octal(const uint8_t *p, int n) {
  size_t v = 0;
  for (int i = 0; i < n && p[i] >= '0' && p[i] <= '7'; i++) v = v * 8 + (size_t)(p[i] - '0');
  return v;
}

/* "a/b.left.png": the key ends at the first point of the last part. */
static size_t key_length(const char *name) {
  const char *base = base_name(name);
  return (size_t)(base - name) + strcspn(base, ".");
}

static bool number_text(const uint8_t *p, size_t n, int32_t *out) {
  char text[16] = {0};
  memcpy(text, p, MIN(n, sizeof text - 1));
  char *end;
  long v = strtol(text, &end, 10);
  *out = (int32_t)v;
  return n < sizeof text && end != text && (!*end || isspace((unsigned char)*end)) && v >= 0 &&
         v < 1 << 20;
}

/* Members of one key lie side by side: a picture and its class. */
typedef struct Pair {
  char *key;
  const uint8_t *picture;
  size_t size;
  int32_t label;
  bool has_label;
} Pair;

static void finish_pair(Pair *p, Files *f, int64_t *classes) {
  if (p->key && p->picture && p->has_label) {
    bool held = f->whole || data_held_out(f->train.n + f->test.n);
    *vec_push(held ? &f->test : &f->train) =
        (Sample){xstrdup(p->key), p->picture, p->size, p->label};
    *classes = MAX(*classes, p->label + 1);
  }
  free(p->key);
  *p = (Pair){0};
}

static Err *tar_members(const uint8_t *tar, size_t n, void *files, int64_t *classes) {
  Files *f = files;
  Pair p = {0};
  Err *e = NULL;
  size_t at = 0;
  while (at + 512 <= n && tar[at] && !e) {
    const uint8_t *h = tar + at, *data = h + 512;
    size_t size = octal(h + 124, 12);
    char name[101] = {0};
    memcpy(name, h, 100);
    if (size > n - at - 512) {
      e = err_new(ERR_DATA_LOSS, "it ends inside '%s'", name);
      break;
    }
    size_t key = key_length(name);
    if (h[156] == '0' || !h[156]) {
      if (p.key && (strlen(p.key) != key || memcmp(p.key, name, key))) finish_pair(&p, f, classes);
      if (!p.key) p.key = xstrndup(name, key);
      if (picture_named(name)) p.picture = data, p.size = size;
      else if (str_ends(str_from(name), ".cls")) {
        p.has_label = number_text(data, size, &p.label);
        if (!p.has_label) e = err_new(ERR_DATA_LOSS, "'%s' is no number of a class", name);
      }
    }
    at += 512 + (size + 511) / 512 * 512;
  }
  finish_pair(&p, f, classes);
  if (!e && at < n && at + 512 > n) e = err_new(ERR_DATA_LOSS, "it ends inside a member's head");
  return e;
}

static Err *map_tar(const char *path, Files *f, int64_t *classes) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat s;
  if (fd < 0 || fstat(fd, &s)) {
    if (fd >= 0) close(fd);
    return err_errno("cannot open '%s'", path);
  }
  void *map = s.st_size ? mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (map == MAP_FAILED) return err_new(ERR_DATA_LOSS, "'%s' is empty", path);
  f->map = map;
  f->map_size = (size_t)s.st_size;
  return err_wrap(tar_members(map, f->map_size, f, classes), "'%s'", path);
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Mean and deviation of some of the training pictures, spread over all. */
static Err *look_at(Data *d) {
  Files *f = d->impl;
  const int64_t *s = d->fields[0].dims;
  size_t size = (size_t)(s[0] * s[1] * s[2]);
  const SampleVec *of = f->train.n ? &f->train : &f->test;
  int step = MAX(1, of->n / SEEN), n = 0;
  uint8_t *p = xmalloc(size * (size_t)(of->n / step + 1));
  Err *e = NULL;
  for (int i = 0; i < of->n && !e; i += step) e = decode(d, &of->v[i], p + size * (size_t)n++);
  if (!e) data_statistics(d, p, n * s[0] * s[1], s[2]);
  free(p);
  return e;
}

Err *data_open_files(const char *path, bool tar, const DataOpts *o, Data **out) {
  Files *f = xcalloc(1, sizeof *f);
  Data *d = xcalloc(1, sizeof *d);
  Buf labels = {0};
  const char *base = base_name(path);
  *d = (Data){.impl = f, .free = free_files, .get = get_file, .n_fields = 2, .decodes = true};
  d->name = xasprintf("%s:%s", tar ? "wds" : "folder", *base ? base : path);
  d->reads = READ_AUGMENT | READ_IMAGE_SIZE;
  f->augment = o->augment;
  f->whole = o->whole;
  const char *names = o->like ? o->like->labels : NULL;
  if (names) buf_cstr(&labels, names);
  Err *e = tar ? map_tar(path, f, &d->classes) : list_root(path, f, &labels, !names);
  int64_t side = o->image_size, c = o->shape[2] ? o->shape[2] : 3;
  d->fields[0] =
      (Field){"images", DT_U8, 3, {side ? side : o->shape[0], side ? side : o->shape[1], c}};
  d->fields[1] = (Field){"labels", DT_I32, 0, {0}};
  d->n_train = f->train.n;
  d->n_test = f->test.n;
  if (labels.n) {
    d->labels = xstrdup(labels.p);
    d->classes = 1;
    for (size_t i = 0; i < labels.n; i++) d->classes += labels.p[i] == '\n';
  }
  buf_free(&labels);
  if (!e && ((!f->train.n && !f->whole) || !f->test.n))
    e = err_hint(
        err_new(ERR_INVALID, "'%s' has %d pictures for training and %d for testing", path,
                f->train.n, f->test.n),
        tar ? "members KEY.png or KEY.jpg with KEY.cls beside them"
            : "DIR/train/CLASS/*.png and DIR/test/CLASS/*.png (or .jpg), or DIR/CLASS/* of "
              "which a tenth is held out");
  if (!e && d->classes < 2 && !f->whole) e = err_new(ERR_INVALID, "'%s' has one class", path);
  if (!e && (!d->fields[0].dims[0] || !d->fields[0].dims[1]))
    d->fields[0].dims[0] = d->fields[0].dims[1] = 64;
  if (!e) e = look_at(d);
  if (e) data_close(d);
  else *out = d;
  return e;
}
