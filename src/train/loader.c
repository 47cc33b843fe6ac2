/* Batches ahead of time. One thread makes batch after batch, uploads each and puts it into a
 * ring; the loop takes them out. If the ring is empty the loop waits, and that wait is the
 * exposed input time. */
#include "train/data_priv.h"
#include "train/train_priv.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { AHEAD = LOADER_AHEAD };

struct Loader {
  const Data *data;
  Client *client;
  int device, n_devices;
  const Cut *cuts;
  bool test, in_order;
  int64_t batch, per_epoch, next, end; /* batches, counted from epoch 0 */
  int64_t own_first, own;              /* examples of a batch that are made here */
  uint64_t seed;
  int32_t *order; /* this epoch's permutation */
  int64_t order_epoch;
  void *host[DATA_FIELDS]; /* one batch of each field */
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  Batch ring[AHEAD];
  int head, count;
  bool stop, done;
  Err *error;
};

size_t field_bytes(const Field *f) {
  size_t n = (size_t)dtype_bytes(f->type);
  for (int i = 0; i < f->rank; i++) n *= (size_t)f->dims[i];
  return n;
}

static void shuffle(Loader *l, int64_t epoch) {
  int64_t n = l->test ? l->data->n_test : l->data->n_train;
  for (int64_t i = 0; i < n; i++) l->order[i] = (int32_t)i;
  for (int64_t i = n - 1; i > 0 && !l->test && !l->in_order;
       i--) { /* Fisher-Yates with counter-based numbers */
    int64_t j =
        (int64_t)(random_word(l->seed, 1000 + (uint64_t)epoch, (uint64_t)i) % (uint64_t)(i + 1));
    int32_t t = l->order[i];
    l->order[i] = l->order[j];
    l->order[j] = t;
  }
  l->order_epoch = epoch;
}

/* Seconds that this thread could have run but had no CPU: where virtual devices are computed on the
 * same cores, that time is not the input's. */
static double run_delay_s(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)gettid());
  FILE *f = fopen(path, "r");
  long long ran = 0, waited = 0;
  if (!f) return 0;
  int n = fscanf(f, "%lld %lld", &ran, &waited);
  fclose(f);
  return n == 2 ? 1e-9 * (double)waited : 0;
}

typedef struct Making { /* what is made here of a batch, by several threads */
  Loader *l;
  int64_t epoch, first;
  int64_t n; /* real examples */
  pthread_mutex_t lock;
  Err *error; /* the first */
} Making;

static void make_example(void *arg, int64_t i) {
  Making *m = arg;
  Loader *l = m->l;
  const Data *d = l->data;
  void *dst[DATA_FIELDS];
  for (int f = 0; f < d->n_fields; f++)
    dst[f] = (char *)l->host[f] + (size_t)i * field_bytes(&d->fields[f]);
  int labels = d->labels_at ? d->labels_at : 1;
  if (i >= m->n) { /* labels of what is no example are -1 */
    for (int f = 0; f < d->n_fields; f++)
      memset(dst[f], f == labels ? 0xff : 0, field_bytes(&d->fields[f]));
    return;
  }
  int64_t at = l->order[m->first + i];
  uint64_t rand = random_word(l->seed, 2000 + (uint64_t)m->epoch, (uint64_t)at);
  Err *e = d->get(d, l->test, at, rand, dst);
  if (!e && !l->test && (d->shift || d->rotate > 0))
    picture_warp(&d->fields[0], d->shift, d->rotate, rand, dst[0]);
  if (!e) return;
  pthread_mutex_lock(&m->lock);
  if (m->error) err_free(e);
  else m->error = e;
  pthread_mutex_unlock(&m->lock);
}

/* A field of what is made here, equal parts in the order of the devices. */
static Err *send_equal(const Loader *l, int f, ClientBuffer **bufs) {
  const Field *fd = &l->data->fields[f];
  int64_t part = l->own / l->n_devices, dims[7] = {part};
  memcpy(dims + 1, fd->dims, sizeof(int64_t) * (size_t)fd->rank);
  for (int dev = 0; dev < l->n_devices; dev++) {
    const char *data = (const char *)l->host[f] + (size_t)(part * dev) * field_bytes(fd);
    TRY(client_buffer_from_host(l->client, l->device + dev, fd->type, fd->rank + 1, dims, data,
                                &bufs[dev * l->data->n_fields + f]));
  }
  return NULL;
}

/* Each device's part of a field, as its sharding says. */
static Err *send_cut(const Loader *l, int f, ClientBuffer **bufs) {
  const Field *fd = &l->data->fields[f];
  int64_t dims[7] = {l->batch};
  memcpy(dims + 1, fd->dims, sizeof(int64_t) * (size_t)fd->rank);
  for (int dev = 0; dev < l->n_devices; dev++) {
    int64_t part[CUT_RANK];
    void *data;
    TRY(cut_take(&l->cuts[f], fd->type, fd->rank + 1, dims, dev, l->host[f], part, &data));
    Err *e = client_buffer_from_host(l->client, l->device + dev, fd->type, fd->rank + 1, part, data,
                                     &bufs[dev * l->data->n_fields + f]);
    free(data);
    TRY(e);
  }
  return NULL;
}

static Err *make_batch(Loader *l, int64_t k, Batch *out) {
  const Data *d = l->data;
  int64_t n = l->test ? d->n_test : d->n_train, epoch = k / l->per_epoch,
          first = k % l->per_epoch * l->batch;
  if (epoch != l->order_epoch) shuffle(l, epoch);
  *out = (Batch){.epoch = epoch,
                 .index = k % l->per_epoch,
                 .n = (int)MIN(l->batch, n - first),
                 .begin_s = time_now_s()};
  double delay = run_delay_s();
  Making m = {l,   epoch, first + l->own_first, out->n - l->own_first, PTHREAD_MUTEX_INITIALIZER,
              NULL};
  if (d->decodes) pool_run(l->own, make_example, &m);
  else
    for (int64_t i = 0; i < l->own; i++) make_example(&m, i);
  if (m.error) return m.error;
  out->make_s = MAX(0, time_now_s() - out->begin_s - (run_delay_s() - delay));
  out->bufs = xcalloc((size_t)(l->n_devices * d->n_fields), sizeof *out->bufs);
  for (int f = 0; f < d->n_fields; f++)
    TRY(l->cuts ? send_cut(l, f, out->bufs) : send_equal(l, f, out->bufs));
  return NULL;
}

void batch_free(const Loader *l, Batch *b) {
  for (int i = 0; b->bufs && i < l->n_devices * l->data->n_fields; i++)
    client_buffer_free(b->bufs[i]);
  free(b->bufs);
  b->bufs = NULL;
}

static void *work(void *arg) {
  Loader *l = arg;
  for (int64_t k = l->next; k < l->end; k++) {
    Batch b = {0};
    Err *e = make_batch(l, k, &b);
    pthread_mutex_lock(&l->lock);
    while (l->count == AHEAD && !l->stop) pthread_cond_wait(&l->changed, &l->lock);
    bool quit = l->stop || e;
    if (quit) {
      l->error = e;
      batch_free(l, &b);
    } else {
      l->ring[(l->head + l->count++) % AHEAD] = b;
    }
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    if (quit) break;
  }
  pthread_mutex_lock(&l->lock);
  l->done = true;
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
  return NULL;
}

Err *loader_open(const LoaderOpts *o, Loader **out) {
  const Data *d = o->data;
  int64_t n = o->test ? d->n_test : d->n_train;
  int64_t per_epoch = o->test ? (n + o->batch - 1) / o->batch : n / o->batch;
  int n_devices = MAX(1, o->n_devices), parts = MAX(n_devices, o->parts);
  assert(o->cuts || o->batch % parts == 0);
  if (per_epoch < 1)
    return err_new(ERR_INVALID, "a batch of %lld is more than the %lld examples of '%s'",
                   (long long)o->batch, (long long)n, d->name);
  Loader *l = xcalloc(1, sizeof *l);
  *l = (Loader){.data = d,
                .client = o->client,
                .device = o->device,
                .n_devices = n_devices,
                .cuts = o->cuts,
                .own_first = o->cuts ? 0 : o->batch / parts * o->first_part,
                .own = o->cuts ? o->batch : o->batch / parts * n_devices,
                .test = o->test,
                .in_order = o->in_order,
                .batch = o->batch,
                .per_epoch = per_epoch,
                .next = o->first,
                .end = o->first + o->n_batches,
                .seed = o->seed,
                .order_epoch = -1};
  l->order = xmalloc(sizeof *l->order * (size_t)n);
  for (int f = 0; f < d->n_fields; f++)
    l->host[f] = xmalloc(field_bytes(&d->fields[f]) * (size_t)l->own);
  pthread_mutex_init(&l->lock, NULL);
  pthread_cond_init(&l->changed, NULL);
  if (pthread_create(&l->thread, NULL, work, l)) {
    free(l->order);
    for (int f = 0; f < DATA_FIELDS; f++) free(l->host[f]);
    free(l);
    return err_new(ERR_EXHAUSTED, "cannot start the data thread");
  }
  *out = l;
  return NULL;
}

Err *loader_next(Loader *l, Batch *out, double *wait_s, bool *more) {
  double t0 = time_now_s();
  pthread_mutex_lock(&l->lock);
  while (!l->count && !l->done) pthread_cond_wait(&l->changed, &l->lock);
  Err *e = NULL;
  *more = l->count > 0;
  if (*more) {
    *out = l->ring[l->head];
    l->head = (l->head + 1) % AHEAD;
    l->count--;
    pthread_cond_broadcast(&l->changed);
  } else {
    e = l->error;
    l->error = NULL;
  }
  pthread_mutex_unlock(&l->lock);
  *wait_s = time_now_s() - t0;
  return e;
}

void loader_close(Loader *l) {
  if (!l) return;
  pthread_mutex_lock(&l->lock);
  l->stop = true;
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
  pthread_join(l->thread, NULL);
  for (int i = 0; i < l->count; i++) batch_free(l, &l->ring[(l->head + i) % AHEAD]);
  err_free(l->error);
  pthread_mutex_destroy(&l->lock);
  pthread_cond_destroy(&l->changed);
  free(l->order);
  for (int f = 0; f < DATA_FIELDS; f++) free(l->host[f]);
  free(l);
}
