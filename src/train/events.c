/* TensorBoard's event files: records (u64 length, masked crc of it, data, masked crc) of
 * protobuf Events with simple_value scalars, which every TensorBoard version reads. */
#include "base/system.h"
#include "base/pb.h"
#include "train/train_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct Events {
  FILE *f;
};

uint32_t crc32c(const void *p, size_t n) { /* Castagnoli, reflected, by the byte */
  static uint32_t table[256];
  if (!table[1])
    for (uint32_t i = 0; i < 256; i++) {
      uint32_t c = i;
      for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0x82F63B78u : c >> 1;
      table[i] = c;
    }
  uint32_t c = ~0u;
  for (const uint8_t *s = p; n--; s++) c = table[(c ^ *s) & 255] ^ c >> 8;
  return ~c;
}

static uint32_t masked(const void *p, size_t n) {
  uint32_t c = crc32c(p, n);
  return (c >> 15 | c << 17) + 0xa282ead8u;
}

static Err *record(Events *e, const Buf *data) {
  uint64_t len = data->n;
  uint32_t c1 = masked(&len, 8), c2 = masked(data->p, data->n);
  bool ok = fwrite(&len, 8, 1, e->f) == 1 && fwrite(&c1, 4, 1, e->f) == 1 &&
            fwrite(data->p, 1, data->n, e->f) == data->n && fwrite(&c2, 4, 1, e->f) == 1;
  return ok ? NULL : err_errno("cannot write the event file");
}

static void wall_time(Buf *b) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  double s = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
  pb_f64(b, 1, s);
}

Err *events_open(const char *dir, Events **out) {
  char host[64] = "host";
  gethostname(host, sizeof host - 1);
  char *path = xasprintf("%s/events.out.tfevents.%lld.%s.%d.weft", dir, (long long)time(NULL), host,
                         (int)getpid());
  Events *e = xcalloc(1, sizeof *e);
  e->f = fopen(path, "ab");
  if (!e->f) {
    Err *err = err_errno("cannot write '%s'", path);
    free(path);
    free(e);
    return err;
  }
  free(path);
  Buf b = {0};
  wall_time(&b);
  pb_str(&b, 3, STR("brain.Event:2"));
  Err *err = record(e, &b);
  buf_free(&b);
  *out = e;
  return err;
}

Err *events_scalar(Events *e, const char *name, int64_t step, double value) {
  Buf v = {0}, s = {0}, b = {0};
  pb_str(&v, 1, str_from(name));
  pb_f32(&v, 2, (float)value);
  pb_msg(&s, 1, &v);
  wall_time(&b);
  pb_int(&b, 2, step);
  pb_msg(&b, 5, &s);
  Err *err = record(e, &b);
  buf_free(&b);
  return err;
}

void events_close(Events *e) {
  if (!e) return;
  fclose(e->f);
  free(e);
}
