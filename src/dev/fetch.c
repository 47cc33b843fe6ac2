#include "dev/fetch.h"

#include <stdlib.h>

typedef struct Fetch {
  const DevProgram *p;
  const DevPart *part;
  Tensor **t;
  int n, n_in;   /* processes; sharded arguments */
  int *args;     /* [n_in] which */
  size_t *bytes; /* [n_in] of a process's part */
} Fetch;

static Tensor **at(const Fetch *f, int arg, int process) { return &f->t[arg * f->n + process]; }

static void find_sharded(Fetch *f) {
  for (int i = 0; i < f->p->n_args; i++) {
    if (!dev_argument_is_parted(f->p, i)) continue;
    const Tensor *own = *at(f, i, f->part->process[0]);
    f->bytes[f->n_in] = own->data ? tensor_bytes(own) : 0;
    f->args[f->n_in++] = i;
  }
}

/* Once all are here: those of other processes into tensors of this one. */
static Err *take(void *arg, const ExchangeHand *hands, const size_t *bytes) {
  const Fetch *f = arg;
  (void)bytes;
  for (int k = 0; k < f->n_in; k++) {
    const Tensor *own = *at(f, f->args[k], f->part->process[0]);
    for (int process = 0; process < f->n; process++) {
      Tensor **to = at(f, f->args[k], process);
      if (*to) continue;
      if (!own->data) {
        *to = tensor_phantom(own->dtype, own->rank, own->dims);
        continue;
      }
      TRY(tensor_new(own->dtype, own->rank, own->dims, to));
      if (f->bytes[k]) memcpy((*to)->data, hands[process].in[k], f->bytes[k]);
    }
  }
  return NULL;
}

static Err *join(Fetch *f) {
  size_t n = (size_t)f->part->n, n_in = (size_t)f->n_in;
  ExchangeHand *hands = xcalloc(n + 1, sizeof *hands);
  void **in = xcalloc(n * n_in + 1, sizeof *in);
  for (size_t k = 0; k < n; k++) {
    for (size_t i = 0; i < n_in; i++)
      in[k * n_in + i] = (*at(f, f->args[i], f->part->process[k]))->data;
    hands[k] = (ExchangeHand){in + k * n_in, NULL};
  }
  ExchangeCall c = {.what = "the arguments",
                    .kind = hash_bytes(f->bytes, sizeof *f->bytes * n_in, n_in),
                    .channel = -2,
                    .n = f->n,
                    .members = f->part->job,
                    .n_mine = f->part->n,
                    .mine = f->part->process,
                    .hands = hands,
                    .n_in = f->n_in,
                    .in_bytes = f->bytes,
                    .finish = take,
                    .arg = f};
  Err *e = exchange_join(f->p->dev->exchange, &c);
  free(hands);
  free(in);
  return e;
}

Err *fetch_arguments(const DevProgram *p, const DevPart *part, Tensor **t) {
  size_t n_args = (size_t)p->n_args;
  Fetch f = {.p = p,
             .part = part,
             .t = t,
             .n = dev_program_processes(p),
             .args = xcalloc(n_args + 1, sizeof(int)),
             .bytes = xcalloc(n_args + 1, sizeof(size_t))};
  find_sharded(&f);
  Err *e = f.n_in ? join(&f) : NULL;
  free(f.args);
  free(f.bytes);
  return e;
}
