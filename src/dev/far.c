#include "dev/far.h"

#include <ctype.h>
#include <stdlib.h>

#define LEAST_PARTED 65536 /* bytes of all operands: below, one exchange is sooner done than two */
#define PIECE 64           /* parts of results are whole pieces */

typedef struct Swap {
  const FarMeeting *m;
  const ExchangeCall *c;
  PeersNote note;
  int me, n;       /* processes */
  void **taken;    /* [process] messages of the others */
  size_t *n_taken; /* [process] their bytes */
  int *members;    /* [process] how many of the group are there */
} Swap;

static uint64_t key_of(const ExchangeCall *c) {
  return hash_bytes(c->members, sizeof *c->members * (size_t)c->n,
                    hash_bytes(&c->channel, sizeof c->channel, 0));
}

/* Of a program's name without the number by which PyTorch/XLA counts them, each process in a way of its own:
 * "SyncTensorsGraph.33". */
static size_t stem(const char *name) {
  size_t n = strlen(name), k = n;
  while (k && isdigit((unsigned char)name[k - 1])) k--;
  return k && name[k - 1] == '.' ? k - 1 : n;
}

static uint64_t kind_of(const FarMeeting *m, const ExchangeCall *c) {
  return hash_bytes(m->program, stem(m->program), c->kind);
}

static int owner_of(const Swap *s, int place) { return s->m->owner[s->c->members[place]]; }

/* ---- messages ---- */

typedef struct Message {
  VEC(const void *) pieces;
  VEC(size_t) sizes;
  VEC(void *) packed; /* owned */
  size_t n;
} Message;

static void add_piece(Message *m, const void *piece, size_t n) {
  if (!n) return;
  *vec_push(&m->pieces) = piece;
  *vec_push(&m->sizes) = n;
  m->n += n;
}

/* Runs that lie apart are copied together. */
static void add_range(Message *m, const char *data, const ExchangeRange *r) {
  if (r->n <= 1) {
    add_piece(m, data + r->from, r->run * r->n);
    return;
  }
  char *packed = xmalloc(r->n * r->run);
  for (size_t i = 0; i < r->n; i++)
    memcpy(packed + i * r->run, data + r->from + i * r->stride, r->run);
  *vec_push(&m->packed) = packed;
  add_piece(m, packed, r->n * r->run);
}

static Err *send_message(const Swap *s, int to, Message *take) {
  Err *e = peers_send(s->m->peers, to, &s->note, take->pieces.n, take->pieces.v, take->sizes.v);
  for (int i = 0; i < take->packed.n; i++) free(take->packed.v[i]);
  vec_free(&take->packed);
  vec_free(&take->pieces);
  vec_free(&take->sizes);
  return e;
}

/* Of every other process, in their order. */
static Err *receive_all(Swap *s) {
  for (int from = 0; from < s->n; from++) {
    if (from == s->me || !s->members[from]) continue;
    free(s->taken[from]);
    s->taken[from] = NULL;
    TRY(peers_receive(s->m->peers, from, &s->note, s->n_taken[from], &s->taken[from]));
  }
  return NULL;
}

/* ---- operands, as far as they are needed, to all; then all compute ---- */

typedef void Visit(void *arg, int from, int k, const ExchangeRange *r);

/* What members of process `to` need of those of `from`, in an order that both know; of a whole operand once. */
static void each_range(const Swap *s, int from, int to, Visit *visit, void *arg) {
  const ExchangeCall *c = s->c;
  for (int i = 0; i < c->n; i++)
    for (int k = 0; k < c->n_in && owner_of(s, i) == from; k++) {
      ExchangeRange whole = {0, c->in_bytes[k], 0, 1}, r = whole;
      if (!c->needs) visit(arg, i, k, &whole);
      for (int t = 0; t < c->n && c->needs; t++) {
        if (owner_of(s, t) != to) continue;
        c->needs(c->arg, i, t, k, &r);
        if (r.n) visit(arg, i, k, &r);
        if (r.n && r.run == c->in_bytes[k]) break;
      }
    }
}

typedef struct Outgoing {
  const Swap *s;
  Message message;
} Outgoing;

static void send_range(void *arg, int from, int k, const ExchangeRange *r) {
  Outgoing *o = arg;
  add_range(&o->message, o->s->m->hands[from].in[k], r);
}

static void count_range(void *arg, int from, int k, const ExchangeRange *r) {
  (void)from, (void)k;
  *(size_t *)arg += r->run * r->n;
}

static Err *swap(Swap *s) {
  for (int to = 0; to < s->n; to++) {
    if (to == s->me || !s->members[to]) continue;
    Outgoing o = {.s = s};
    each_range(s, s->me, to, send_range, &o);
    TRY(send_message(s, to, &o.message));
    s->n_taken[to] = 0;
    each_range(s, to, s->me, count_range, &s->n_taken[to]);
  }
  return receive_all(s);
}

typedef struct Incoming {
  const ExchangeCall *c;
  const char *at;   /* in a message */
  void **in, **own; /* [place * n_in + k] of far members; own: what was allocated for it */
  size_t refused;   /* bytes that there was no memory for; 0: there was */
} Incoming;

static void *room_for(Incoming *in, size_t slot, size_t n) {
  if (!in->own[slot]) in->in[slot] = in->own[slot] = calloc(n + 1, 1);
  if (!in->own[slot]) in->refused = n;
  return in->own[slot];
}

/* A whole operand stays in its message; of others there is memory for all, and the needed part is filled. */
static void place_range(void *arg, int from, int k, const ExchangeRange *r) {
  Incoming *in = arg;
  size_t slot = (size_t)from * (size_t)in->c->n_in + (size_t)k, all = in->c->in_bytes[k];
  if (r->run == all && r->n == 1) {
    in->in[slot] = (void *)(uintptr_t)in->at;
  } else {
    char *to = room_for(in, slot, all);
    for (size_t i = 0; i < r->n && to; i++)
      memcpy(to + r->from + i * r->stride, in->at + i * r->run, r->run);
  }
  in->at += r->run * r->n;
}

/* Nobody needs anything of it: it is there all the same. */
static void fill_rest(const Swap *s, Incoming *in) {
  for (int i = 0; i < s->c->n; i++)
    for (int k = 0; k < s->c->n_in && owner_of(s, i) != s->me; k++) {
      size_t slot = (size_t)i * (size_t)s->c->n_in + (size_t)k;
      if (!in->in[slot]) room_for(in, slot, s->c->in_bytes[k]);
    }
}

static Err *compute(const Swap *s) {
  const ExchangeCall *c = s->c;
  size_t n = (size_t)c->n, n_in = (size_t)c->n_in;
  ExchangeHand *hands = xmalloc(sizeof *hands * n);
  void **lists = xcalloc(2 * n * n_in + (size_t)c->n_out + 1, sizeof *lists),
       **no_room = lists + 2 * n * n_in;
  Incoming in = {c, NULL, lists, lists + n * n_in, 0};
  for (int from = 0; from < s->n; from++) {
    in.at = s->taken[from];
    if (from != s->me && s->members[from]) each_range(s, from, s->me, place_range, &in);
  }
  fill_rest(s, &in);
  for (size_t i = 0; i < n; i++)
    hands[i] =
        owner_of(s, (int)i) == s->me ? s->m->hands[i] : (ExchangeHand){in.in + i * n_in, no_room};
  Err *e = in.refused ? err_new(ERR_EXHAUSTED, "%s: no memory for the %zu bytes of another process",
                                s->note.what, in.refused)
                      : c->finish(c->arg, hands, NULL);
  for (size_t i = 0; i < n * n_in; i++) free(in.own[i]);
  free(hands);
  free(lists);
  return e;
}

/* ---- by element: each process computes a part of the results, and sends it to all ---- */

/* Part of process p of n bytes: parts go to the processes of the group in turn, as even as pieces allow. */
static ExchangeRange part_of(const Swap *s, int p, size_t n) {
  size_t before = 0, all = 0, pieces = (n + PIECE - 1) / PIECE;
  for (int i = 0; i < s->n; i++) {
    before += i < p && s->members[i];
    all += s->members[i] > 0;
  }
  size_t from = MIN(pieces * before / all * PIECE, n),
         to = MIN(pieces * (before + 1) / all * PIECE, n);
  return (ExchangeRange){from, to - from, 0, 1};
}

/* Is that less to send? With two processes of one member each it is as much, in two exchanges. */
static bool goes_in_parts(const Swap *s) {
  size_t bytes = 0;
  int processes = 0;
  for (int k = 0; k < s->c->n_in; k++) bytes += s->c->in_bytes[k];
  for (int i = 0; i < s->n; i++) processes += s->members[i] > 0;
  return s->c->by_element && bytes >= LEAST_PARTED && (processes > 2 || s->c->n > 2);
}

static int first_own(const Swap *s) {
  int i = 0;
  while (owner_of(s, i) != s->me) i++;
  return i;
}

static Err *send_parts(Swap *s) {
  const ExchangeCall *c = s->c;
  for (int to = 0; to < s->n; to++) {
    if (to == s->me || !s->members[to]) continue;
    Message m = {0};
    s->n_taken[to] = 0;
    for (int k = 0; k < c->n_in; k++) {
      ExchangeRange its = part_of(s, to, c->in_bytes[k]), mine = part_of(s, s->me, c->in_bytes[k]);
      for (int i = 0; i < c->n; i++)
        if (owner_of(s, i) == s->me) add_range(&m, s->m->hands[i].in[k], &its);
      s->n_taken[to] += mine.run * (size_t)s->members[to];
    }
    TRY(send_message(s, to, &m));
  }
  return receive_all(s);
}

/* Of all operands and results the part that this process computes: buffers begin there. */
static Err *compute_part(const Swap *s) {
  const ExchangeCall *c = s->c;
  size_t n = (size_t)c->n, n_in = (size_t)c->n_in;
  ExchangeHand *hands = xcalloc(n, sizeof *hands);
  void **lists = xcalloc(n * (n_in + (size_t)c->n_out) + 1, sizeof *lists);
  size_t *bytes = xcalloc(n_in + 1, sizeof *bytes);
  const char **at = xcalloc((size_t)s->n, sizeof *at);
  for (int p = 0; p < s->n; p++) at[p] = s->taken[p];
  for (size_t i = 0; i < n; i++)
    hands[i] = (ExchangeHand){lists + i * n_in, lists + n * n_in + i * (size_t)c->n_out};
  for (size_t k = 0; k < n_in; k++) {
    ExchangeRange mine = part_of(s, s->me, c->in_bytes[k]);
    bytes[k] = mine.run;
    for (size_t i = 0; i < n; i++) {
      int owner = owner_of(s, (int)i);
      const ExchangeHand *own = &s->m->hands[i];
      void **in = lists + i * n_in, **out = lists + n * n_in + i * (size_t)c->n_out;
      if (owner == s->me) {
        in[k] = (char *)own->in[k] + mine.from;
        out[k] = own->out[k] ? (char *)own->out[k] + mine.from : NULL;
      } else {
        in[k] = (void *)(uintptr_t)at[owner];
        at[owner] += mine.run;
      }
    }
  }
  Err *e = c->finish(c->arg, hands, bytes);
  free(hands);
  free(lists);
  free(bytes);
  free(at);
  return e;
}

static Err *send_results(Swap *s) {
  const ExchangeCall *c = s->c;
  const ExchangeHand *own = &s->m->hands[first_own(s)];
  for (int to = 0; to < s->n; to++) {
    if (to == s->me || !s->members[to]) continue;
    Message m = {0};
    s->n_taken[to] = 0;
    for (int k = 0; k < c->n_in; k++) {
      ExchangeRange mine = part_of(s, s->me, c->in_bytes[k]);
      add_range(&m, own->out[k], &mine);
      s->n_taken[to] += part_of(s, to, c->in_bytes[k]).run;
    }
    TRY(send_message(s, to, &m));
  }
  return receive_all(s);
}

static void place_results(const Swap *s) {
  const ExchangeCall *c = s->c;
  for (int from = 0; from < s->n; from++) {
    const char *at = s->taken[from];
    for (int k = 0; k < c->n_in && from != s->me && s->members[from]; k++) {
      ExchangeRange its = part_of(s, from, c->in_bytes[k]);
      for (int i = 0; i < c->n; i++)
        if (owner_of(s, i) == s->me && its.run)
          memcpy((char *)s->m->hands[i].out[k] + its.from, at, its.run);
      at += its.run;
    }
  }
}

static Err *in_parts(Swap *s) {
  TRY(send_parts(s));
  TRY(compute_part(s));
  TRY(send_results(s));
  place_results(s);
  return NULL;
}

/* ---- all ---- */

Err *far_finish(const FarMeeting *m, const ExchangeCall *c) {
  if (!c->in_bytes)
    return err_new(ERR_UNIMPLEMENTED, "%s in '%s' cannot go to other processes", c->what,
                   m->program);
  char *what = xasprintf("%s in '%s'", c->what, m->program);
  size_t n = (size_t)peers_count(m->peers);
  Swap s = {.m = m,
            .c = c,
            .note = {key_of(c), kind_of(m, c), what},
            .me = peers_id(m->peers),
            .n = (int)n,
            .taken = xcalloc(n, sizeof *s.taken),
            .n_taken = xcalloc(n, sizeof *s.n_taken),
            .members = xcalloc(n, sizeof *s.members)};
  for (int i = 0; i < c->n; i++) s.members[owner_of(&s, i)]++;
  Err *e = NULL;
  if (goes_in_parts(&s)) {
    e = in_parts(&s);
  } else {
    e = swap(&s);
    if (!e) e = compute(&s);
  }
  for (size_t i = 0; i < n; i++) free(s.taken[i]);
  free(s.taken);
  free(s.n_taken);
  free(s.members);
  free(what);
  return e;
}
