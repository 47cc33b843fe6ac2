/* Recording some steps of a training run: the plugin's profiler tells what the devices did, the
 * loader how long each batch took. A real device and the loader share the wall clock. Beside a
 * virtual one the loader is replayed by the rules it runs by (prof_join_input), since on the wall
 * clock it had all the time in which the device's numbers were computed. */
#include "train/train_priv.h"

#include <stdlib.h>

Err *record_before_step(Record *r, int64_t step, const Batch *b) {
  if (!r->steps || step < r->first || step >= r->first + r->steps) return NULL;
  if (!r->running) {
    r->begin_s = time_now_s();
    TRY(client_profile_start(r->client, &r->running));
  }
  *vec_push(&r->make_s) = b->make_s;
  *vec_push(&r->begins) = b->begin_s;
  return NULL;
}

static void loader_spans(const Record *r, Prof *p) {
  int lane = prof_lane(p, "input");
  for (int i = 0; i < r->make_s.n; i++)
    prof_host(p, lane, HOST_INPUT, "make batch", MAX(0, r->begins.v[i] - r->begin_s),
              r->make_s.v[i])
        ->step = i;
}

Err *record_finish(Record *r, const char *title, Prof **out) {
  Buf bytes = {0};
  Err *e = client_profile_stop(r->running, &bytes);
  r->running = NULL;
  r->steps = 0;
  Prof *p = NULL;
  if (!e) e = prof_read_xspace((Str){bytes.p, bytes.n}, &p);
  buf_free(&bytes);
  if (!e) {
    p->title = prof_str(p, title);
    if (p->devices.v[0].is_virtual) {
      p->host.n = p->lanes.n = p->ticks.n = 0; /* the replay has its own */
      prof_join_input(p, &(ProfInput){r->make_s.n, r->make_s.v, r->batch_bytes, LOADER_AHEAD});
      prof_end(p);
    } else {
      loader_spans(r, p);
    }
    *out = p;
  }
  vec_free(&r->make_s);
  vec_free(&r->begins);
  return err_wrap(e, "recording steps");
}
