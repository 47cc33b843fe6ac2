#include "dev/far.h"

#include <stdlib.h>

typedef struct Swap {
  const FarMeeting *m;
  const ExchangeCall *c;
  PeersNote note;
  size_t hand_bytes; /* of all operands of a member */
  void **taken;      /* [process] messages of the others */
} Swap;

static uint64_t key_of(const ExchangeCall *c) {
  return hash_bytes(c->members, sizeof *c->members * (size_t)c->n,
                    hash_bytes(&c->channel, sizeof c->channel, 0));
}

static uint64_t kind_of(const FarMeeting *m, const ExchangeCall *c) {
  return hash_bytes(m->program, strlen(m->program), c->kind);
}

static int owner_of(const Swap *s, int place) { return s->m->owner[s->c->members[place]]; }

static int members_of(const Swap *s, int process) {
  int n = 0;
  for (int i = 0; i < s->c->n; i++) n += owner_of(s, i) == process;
  return n;
}

static Err *send_own(const Swap *s, int to) {
  const ExchangeCall *c = s->c;
  int me = peers_id(s->m->peers), n = 0;
  size_t most = (size_t)c->n * (size_t)c->n_in + 1;
  const void **pieces = xmalloc(sizeof *pieces * most);
  size_t *sizes = xmalloc(sizeof *sizes * most);
  for (int i = 0; i < c->n; i++)
    for (int k = 0; k < c->n_in && owner_of(s, i) == me; k++) {
      pieces[n] = s->m->hands[i].in[k];
      sizes[n++] = c->in_bytes[k];
    }
  Err *e = peers_send(s->m->peers, to, &s->note, n, pieces, sizes);
  free(pieces);
  free(sizes);
  return e;
}

/* To all before any is waited for. */
static Err *swap(Swap *s) {
  int me = peers_id(s->m->peers), n = peers_count(s->m->peers);
  for (int to = 0; to < n; to++)
    if (to != me && members_of(s, to)) TRY(send_own(s, to));
  for (int from = 0; from < n; from++) {
    int members = from == me ? 0 : members_of(s, from);
    if (members)
      TRY(peers_receive(s->m->peers, from, &s->note, s->hand_bytes * (size_t)members,
                        &s->taken[from]));
  }
  return NULL;
}

/* Far members' operands lie in their process's message one after the other. */
static Err *compute(const Swap *s) {
  const ExchangeCall *c = s->c;
  size_t n = (size_t)c->n, n_in = (size_t)c->n_in;
  ExchangeHand *hands = xmalloc(sizeof *hands * n);
  void **in = xcalloc(n * n_in + 1, sizeof *in),
       **no_room = xcalloc((size_t)c->n_out + 1, sizeof *in);
  size_t *at = xcalloc((size_t)peers_count(s->m->peers), sizeof *at);
  int me = peers_id(s->m->peers);
  for (size_t i = 0; i < n; i++) {
    int owner = owner_of(s, (int)i);
    hands[i] = owner == me ? s->m->hands[i] : (ExchangeHand){in + i * n_in, no_room};
    for (size_t k = 0; k < n_in && owner != me; k++) {
      in[i * n_in + k] = (char *)s->taken[owner] + at[owner];
      at[owner] += c->in_bytes[k];
    }
  }
  Err *e = c->finish(c->arg, hands);
  free(hands);
  free(in);
  free(no_room);
  free(at);
  return e;
}

Err *far_finish(const FarMeeting *m, const ExchangeCall *c) {
  if (!c->in_bytes)
    return err_new(ERR_UNIMPLEMENTED, "%s in '%s' cannot go to other processes", c->what,
                   m->program);
  char *what = xasprintf("%s in '%s'", c->what, m->program);
  Swap s = {.m = m, .c = c, .note = {key_of(c), kind_of(m, c), what}};
  int n = peers_count(m->peers);
  for (int k = 0; k < c->n_in; k++) s.hand_bytes += c->in_bytes[k];
  s.taken = xcalloc((size_t)n, sizeof *s.taken);
  Err *e = swap(&s);
  if (!e) e = compute(&s);
  for (int i = 0; i < n; i++) free(s.taken[i]);
  free(s.taken);
  free(what);
  return e;
}
