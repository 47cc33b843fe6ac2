/* Blocks that run many times, the bodies of loops: their steps in a row, with everything found
 * beforehand that stays the same during a run, so that a turn over a few numbers costs little more
 * than the kernels' own work. What takes more than that (loops inside, work for several threads) is
 * left to the caller, step by step. For one process. */
#include "dev/cpu/cpu_priv.h"
#include "dev/cpu/loops/while_codegen.h"

#define MOST_CROSSED 65536 /* bytes of results changing places for which memory is kept */

#define MOST_WINDOW (1 << 20) /* bytes of a slice that one thread moves */

typedef enum EntryKind { CALL, OP, MOVE, SLICE, UPDATE, VIEW, STEP } EntryKind;

/* Where a slice is in its array. */
typedef struct Window {
  Box box;
  int64_t first; /* byte, before what the indices add */
  int n;
  struct {
    const void *index;
    bool wide; /* 64 bits */
    int64_t top, step;
  } dims[8];
} Window;

typedef struct Entry {
  EntryKind kind;
  FusedFn fn; /* CALL: of all its tasks */
  const void *self;
  int64_t tasks;
  const StepCode *code; /* OP */
  const Step *step;     /* OP, VIEW, STEP */
  void **bufs;          /* CALL, OP, VIEW: operands, then results */
  void *to;             /* MOVE, SLICE, UPDATE */
  const void *from;
  size_t bytes;
  Window *window;       /* SLICE, UPDATE */
  int patch, n_patches; /* VIEW: whose address changes, in CommandList.patches */
} Entry;

struct CommandList {
  int64_t run;    /* whose addresses these are */
  bool tiered_up; /* of code that was generated during a run */
  VEC(Entry) entries;
  VEC(Window *) windows;
  int n_windows; /* in use */
  void **bufs;   /* of all entries */
  int *places;   /* of each of bufs */
  int n_bufs;
  VEC(void **) patches;
  char *crossed; /* results on their way */
  bool moves;    /* the block's results too */
};

static Entry *add(CommandList *t, EntryKind kind) {
  Entry *e = vec_push(&t->entries);
  *e = (Entry){.kind = kind};
  return e;
}

static void add_move(CommandList *t, void *to, const void *from, int64_t bytes) {
  if (to == from || !bytes) return;
  Entry *e = add(t, MOVE);
  e->to = to;
  e->from = from;
  e->bytes = (size_t)bytes;
}

static void *at(const RunMem *m, int place) { return place < 0 ? NULL : m->ptr[place]; }

/* Operands and results of a step, and the memory for partial results, as the next bufs of the commands. */
static void **bind(CommandList *t, const RunMem *m, const Step *s) {
  void **first = t->bufs + t->n_bufs;
  for (int i = 0; i < s->n_in + s->n_out; i++) {
    int place = i < s->n_in ? s->in[i] : s->out[i - s->n_in];
    t->places[t->n_bufs] = place;
    t->bufs[t->n_bufs++] = at(m, place);
  }
  t->places[t->n_bufs] = -1;
  t->bufs[t->n_bufs++] = m->partial;
  return first;
}

static bool is_serial(const FusedCode *k) {
  bool finishes = !k->finish || k->finish_outer <= MAX(k->finish_grain, 1);
  return k->outer <= MAX(k->grain, 1) && finishes;
}

static void add_call(CommandList *t, FusedFn fn, const void *self, int64_t tasks, void **bufs) {
  if (!fn || tasks <= 0) return;
  Entry *e = add(t, CALL);
  e->fn = fn;
  e->self = self;
  e->tasks = tasks;
  e->bufs = bufs;
}

static int64_t index_of(const void *p, bool wide) {
  return wide ? *(const int64_t *)p : *(const int32_t *)p;
}

/* Of a slice of `part` in `whole`; s->in from `first` on are its indices. false: not so simple */
static bool find_window(const Code *c, const RunMem *m, const Step *s, int first, const Type *whole,
                        const Type *part, Window *w) {
  int64_t step = dtype_bytes(whole->dtype);
  w->n = 0;
  w->first = 0;
  if (!while_box(whole, part, &w->box) || w->box.n * w->box.piece > MOST_WINDOW) return false;
  for (int i = whole->rank - 1; i >= 0; step *= whole->dims[i--]) {
    DType t = s->op->operands[first + i]->type->dtype;
    int64_t top = whole->dims[i] - part->dims[i];
    int p = s->in[first + i];
    if ((t != DT_I32 && t != DT_I64) || p < 0) return false;
    if (top <= 0) continue;
    if (c->plan->places[p].kind == PLACE_CONST) {
      int64_t x = index_of(at(m, p), t == DT_I64);
      w->first += MAX(0, MIN(x, top)) * step;
      continue;
    }
    if (w->n == COUNT_OF(w->dims)) return false;
    w->dims[w->n].index = at(m, p);
    w->dims[w->n].wide = t == DT_I64;
    w->dims[w->n].top = top;
    w->dims[w->n++].step = step;
  }
  return true;
}

/* Is the address of a place the same at every turn? */
static bool stays(const Code *c, int place) {
  return place >= 0 && c->plan->places[place].kind != PLACE_VIEW;
}

static bool add_window(CommandList *t, const Code *c, const RunMem *m, const Step *s) {
  OpKind kind = s->op->kind;
  bool update = kind == OP_DYNAMIC_UPDATE_SLICE;
  if (kind != OP_DYNAMIC_SLICE && !update) return false;
  const Type *whole = s->op->operands[0]->type,
             *part = update ? s->op->operands[1]->type : op_type(s->op);
  if (!stays(c, s->in[0]) || !stays(c, s->out[0]) || !stays(c, s->in[update])) return false;
  if (update && at(m, s->in[0]) != at(m, s->out[0])) return false;
  if (t->n_windows == t->windows.n) *vec_push(&t->windows) = xmalloc(sizeof(Window));
  Window *w = t->windows.v[t->n_windows];
  if (!find_window(c, m, s, update ? 2 : 1, whole, part, w)) return false;
  t->n_windows++;
  Entry *e = add(t, update ? UPDATE : SLICE);
  e->window = w;
  e->to = at(m, s->out[0]);
  e->from = at(m, s->in[update ? 1 : 0]);
  return true;
}

static void add_step(CommandList *t, const Code *c, const RunMem *m, const Step *s) {
  const StepCode *k = &c->steps[s->id];
  const FusedCode *f = code_now(k);
  if (s->kind == STEP_FUSED && is_serial(f)) {
    void **bufs = bind(t, m, s);
    add_call(t, f->run, f->self, f->outer, bufs);
    add_call(t, f->finish, f->self, f->finish_outer, bufs);
  } else if (s->kind == STEP_OP && add_window(t, c, m, s)) {
    return;
  } else if (s->kind == STEP_OP && !k->prepack_bytes) {
    Entry *e = add(t, OP);
    e->code = k;
    e->step = s;
    e->bufs = bind(t, m, s);
  } else if (s->kind == STEP_VIEW) {
    Entry *e = add(t, VIEW);
    e->step = s;
    e->bufs = bind(t, m, s);
  } else if (s->kind == STEP_COPY && s->in[0] >= 0 && s->out[0] >= 0) {
    add_move(t, at(m, s->out[0]), at(m, s->in[0]), c->plan->places[s->out[0]].bytes);
  } else if (s->kind != STEP_COPY) {
    add(t, STEP)->step = s;
  }
}

bool commands_crosses(const Block *b) {
  for (int i = 0; i < b->n_results; i++)
    for (int j = 0; j < i; j++)
      if (b->from[i] >= 0 && b->from[i] == b->to[j] && b->from[j] != b->to[j]) return true;
  return false;
}

/* The block's results to their places; false: they cross and are too large to be kept meanwhile. */
static bool add_results(CommandList *t, const Code *c, const RunMem *m, const Block *b) {
  bool crossed = commands_crosses(b);
  int64_t total = 0;
  for (int i = 0; i < b->n_results && crossed; i++)
    if (b->to[i] >= 0 && b->from[i] != b->to[i])
      total += (c->plan->places[b->to[i]].bytes + 15) / 16 * 16;
  if (total > MOST_CROSSED) return false;
  if (total && !t->crossed) t->crossed = xmalloc((size_t)total);
  for (int pass = crossed ? 0 : 1; pass < 2; pass++) {
    char *p = t->crossed;
    for (int i = 0; i < b->n_results; i++) {
      if (b->to[i] < 0 || b->from[i] < 0 || b->from[i] == b->to[i]) continue;
      int64_t bytes = c->plan->places[b->to[i]].bytes;
      void *from = at(m, b->from[i]), *to = at(m, b->to[i]);
      if (!crossed) {
        add_move(t, to, from, bytes);
        continue;
      }
      if (pass == 0) add_move(t, p, from, bytes);
      else add_move(t, to, p, bytes);
      p += (bytes + 15) / 16 * 16;
    }
  }
  return true;
}

/* A view's address goes where its readers look for it; steps left to the caller ask the run's memory. */
static void find_patches(CommandList *t, RunMem *m) {
  t->patches.n = 0;
  for (int i = 0; i < t->entries.n; i++) {
    Entry *e = &t->entries.v[i];
    if (e->kind != VIEW) continue;
    int place = e->step->out[0];
    e->patch = t->patches.n;
    *vec_push(&t->patches) = &m->ptr[place];
    for (int k = 0; k < t->n_bufs; k++)
      if (t->places[k] == place) *vec_push(&t->patches) = &t->bufs[k];
    e->n_patches = t->patches.n - e->patch;
  }
}

static int most_bufs(const Block *b) {
  int n = 0;
  for (int i = 0; i < b->n; i++) n += b->steps[i].n_in + b->steps[i].n_out + 1;
  return n;
}

CommandList *commands_of(const Code *c, RunMem *m, const Step *s, int block) {
  struct Turns *all = &m->turns[s->id];
  if (!all->of) {
    all->of = xcalloc((size_t)s->n_blocks, sizeof *all->of);
    all->n = s->n_blocks;
  }
  const Block *b = &s->blocks[block];
  CommandList *t = all->of[block];
  bool tiered_up = tier_up_is_done(c);
  if (t && t->run == m->runs && t->tiered_up == tiered_up) return t;
  if (!t) {
    t = all->of[block] = xcalloc(1, sizeof *t);
    t->bufs = xcalloc((size_t)most_bufs(b) + 1, sizeof *t->bufs);
    t->places = xcalloc((size_t)most_bufs(b) + 1, sizeof *t->places);
  }
  t->run = m->runs;
  t->tiered_up = tiered_up;
  t->entries.n = t->n_bufs = t->n_windows = 0;
  for (int i = 0; i < b->n; i++) add_step(t, c, m, &b->steps[i]);
  find_patches(t, m);
  t->moves = (s->kind == STEP_WHILE && block == 0) || add_results(t, c, m, b);
  return t;
}

bool commands_moves(const CommandList *t) { return t->moves; }

static void look(const CommandList *t, const Entry *e) {
  void *p = cpu_slice_start(e->step->op, e->bufs);
  for (int k = 0; k < e->n_patches; k++) *t->patches.v[e->patch + k] = p;
}

static inline void move(void *to, const void *from, size_t n) {
  switch (n) { /* what loops carry most: no call */
  case 1: memcpy(to, from, 1); return;
  case 4: memcpy(to, from, 4); return;
  case 8: memcpy(to, from, 8); return;
  case 16: memcpy(to, from, 16); return;
  default: memmove(to, from, n);
  }
}

static int64_t start_of(const Window *w) {
  int64_t off = w->first;
  for (int i = 0; i < w->n; i++) {
    int64_t x = index_of(w->dims[i].index, w->dims[i].wide);
    off += MAX(0, MIN(x, w->dims[i].top)) * w->dims[i].step;
  }
  return off;
}

static void slice(const Entry *e) {
  const Box *b = &e->window->box;
  const char *from = (const char *)e->from + start_of(e->window);
  for (int64_t i = 0; i < b->n; i++)
    move((char *)e->to + i * b->piece, from + b->at[i], (size_t)b->piece);
}

static void update(const Entry *e) {
  const Box *b = &e->window->box;
  char *to = (char *)e->to + start_of(e->window);
  for (int64_t i = 0; i < b->n; i++)
    move(to + b->at[i], (const char *)e->from + i * b->piece, (size_t)b->piece);
}

Err *commands_run(const CommandList *t, Err *(*other)(void *arg, const Step *s), void *arg) {
  const Entry *end = t->entries.v + t->entries.n;
  for (const Entry *e = t->entries.v; e < end; e++) switch (e->kind) {
    case CALL: e->fn(e->bufs, 0, e->tasks, e->self); break;
    case MOVE: move(e->to, e->from, e->bytes); break;
    case SLICE: slice(e); break;
    case UPDATE: update(e); break;
    case VIEW: look(t, e); break;
    case OP:
      TRY(e->code->kernel->run(e->code->state, e->step->op, e->bufs, e->bufs + e->step->n_in));
      break;
    case STEP: TRY(other(arg, e->step)); break;
    }
  return NULL;
}

void commands_free(CommandList *t) {
  if (!t) return;
  vec_free(&t->entries);
  for (int i = 0; i < t->windows.n; i++) free(t->windows.v[i]);
  vec_free(&t->windows);
  vec_free(&t->patches);
  free(t->bufs);
  free(t->places);
  free(t->crossed);
  free(t);
}
