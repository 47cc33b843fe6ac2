/* A prepared convolution: see conv_prepared.h. Copies of the operands and of the result live as long as the run. */
#include "dev/cpu/conv/conv_prepared.h"
#include "dev/cpu/kernel/mem.h"

/* The weights of groups into those of merged ones (zeros stand there), or back. */
static void move_weights(const Conv *c, float *user, float *merged, bool back) {
  const ConvView *from = &c->w, *to = &c->s.v[W];
  int64_t at[12] = {0}, n = 1;
  for (int i = 0; i < from->n; i++) n *= from->dims[i];
  for (int64_t k = 0; k < n; k++) {
    int64_t u = 0, sub = at[0] % c->merged;
    int64_t m = at[0] / c->merged * to->strides[0] +
                sub * (from->dims[1] * to->strides[1] + from->dims[2] * to->strides[2]);
    for (int i = 0; i < from->n; i++) u += at[i] * from->strides[i];
    for (int i = 1; i < from->n; i++) m += at[i] * to->strides[i];
    if (back) user[u] = merged[m];
    else merged[m] = user[u];
    for (int i = from->n - 1; i >= 0 && ++at[i] == from->dims[i]; i--) at[i] = 0;
  }
}

#define BF16_CHANNELS 16 /* that oneDNN takes together */

/* What is not finite could reach results that do not read it: zeros stand between merged groups, and
 * where oneDNN's pairs of bf16 reach beyond a group's channels or a row's places. */
static bool may_leak(const Conv *c) {
  if (!dtype_is_float(c->s.t[c->s.result])) return false;
  if (c->merged > 1) return c->s.form != CONV_WEIGHTS;
  if (!c->dnnl || c->wide || c->s.t[X] != DT_BF16) return false;
  const ConvView *w = &c->s.v[W];
  return c->s.form == CONV_WEIGHTS || w->dims[c->s.form == CONV_DATA ? 1 : 2] % BF16_CHANNELS;
}

typedef struct Copies { /* memory of this run */
  void *p[8];
  size_t bytes[8];
  int n;
  bool failed;
} Copies;

static void *room(Copies *k, int64_t elements, size_t size) {
  size_t n = (size_t)elements * size;
  void *p = cpu_block_alloc(n);
  if (!p) k->failed = true;
  else k->p[k->n] = p, k->bytes[k->n++] = n;
  return p;
}

/* The elements of `to`, in the order of its strides (dense), from where `from` has them. */
static void copy_view(const ConvView *from, const ConvView *to, size_t size, const char *in,
                      char *out) {
  int64_t dims[12], strides[12];
  bool done[12] = {false};
  for (int k = 0; k < to->n; k++) {
    int next = -1;
    for (int i = 0; i < to->n; i++)
      if (!done[i] && (next < 0 || to->strides[i] > to->strides[next] ||
                       (to->strides[i] == to->strides[next] && to->dims[i] == 1)))
        next = i;
    done[next] = true;
    dims[k] = to->dims[next], strides[k] = from->strides[next];
  }
  cpu_permute(size, to->n, dims, strides, in + from->offset * (int64_t)size,
              out + to->offset * (int64_t)size);
}

/* From memory of our own to a result that is filled from its end: the other way round, to its first element. */
static void turn_back(const Conv *c, const void *mine, void *user) {
  ConvView from = c->s.v[W], to = c->w;
  for (int i = 0; i < to.n; i++) {
    if (to.strides[i] >= 0) continue;
    int64_t last = to.dims[i] - 1;
    to.offset += last * to.strides[i], to.strides[i] = -to.strides[i];
    from.offset += last * from.strides[i], from.strides[i] = -from.strides[i];
  }
  copy_view(&from, &to, c->wide ? 4 : (size_t)dtype_bytes(c->s.t[W]), mine, user);
}

static DType computed_as(const Conv *c, int i) { return c->dnnl ? DT_F32 : c->at.t[i]; }
static size_t size_of(const Conv *c, int i) { return (size_t)dtype_bytes(computed_as(c, i)); }

typedef struct Outcome {
  Copies k;
  int status; /* of oneDNN */
  bool finite;
} Outcome;

/* Which of X, W and Y the two operands are. */
static void roles(const ConvShape *s, int *role) {
  role[0] = s->form == CONV_DATA || s->swapped ? Y : X;
  role[1] = s->swapped ? X : s->form == CONV_WEIGHTS ? Y : W;
}

/* In copies where it wants other orders. */
static void run_impl(const Conv *c, void *const *data, Outcome *o) {
  void *mine[3];
  int result = c->s.result;
  for (int i = 0; i < 3; i++) {
    mine[i] = data[i];
    if (!c->copied[i]) continue;
    if (!(mine[i] = room(&o->k, conv_elements(&c->s.v[i]), size_of(c, i)))) return;
    if (i != result) copy_view(&c->s.v[i], &c->at.v[i], size_of(c, i), data[i], mine[i]);
  }
  const ConvImpl *impl = c->impl;
  if (!(impl->run ? impl->run(&c->at, mine) : impl->run_checked(&c->at, mine, &o->finite)))
    o->k.failed = true;
  else if (c->copied[result])
    copy_view(&c->at.v[result], &c->s.v[result], size_of(c, result), mine[result], data[result]);
}

static void run_shape(const Conv *c, void *const *operand, void *result, Outcome *o) {
  void *data[3];
  int role[2];
  roles(&c->s, role);
  data[role[0]] = operand[0];
  data[role[1]] = operand[1];
  data[c->s.result] = result;
  float *user = data[W];
  if (c->merged > 1) {
    int64_t n = conv_elements(&c->s.v[W]);
    if (!(data[W] = room(&o->k, n, 4))) return;
    if (c->s.result != W) {
      memset(data[W], 0, sizeof(float) * (size_t)n);
      move_weights(c, user, data[W], false);
    }
  }
  if (c->turned) {
    if (!(data[W] = room(&o->k, conv_elements(&c->w), 4))) return;
    if (c->s.result != W) copy_view(&c->w, &c->s.v[W], 4, (const char *)user, data[W]);
  }
  if (!c->dnnl) run_impl(c, data, o);
  else if (!conv_dnnl_run(c->dnnl, data, &o->status)) o->k.failed = true;
  if (c->turned && c->s.result == W && !o->k.failed) turn_back(c, data[W], user);
  if (c->merged > 1 && c->s.result == W && !o->k.failed) move_weights(c, user, data[W], true);
}

static void run_parts(const Conv *c, void *const *operand, void *result, Outcome *o) {
  void *data[3], *mine[3];
  int role[2], to = c->s.result;
  roles(&c->s, role);
  data[role[0]] = operand[0];
  data[role[1]] = operand[1];
  data[to] = result;
  for (int i = 0; i < 3; i++) {
    size_t size = (size_t)dtype_bytes(c->s.t[i]);
    mine[i] = data[i];
    if (i != W && !c->copied[i]) continue;
    if (!(mine[i] = room(&o->k, conv_elements(&c->s.v[i]) * (i == W ? 2 : 1), size))) return;
    if (i == to) continue;
    if (i == W) conv_parts_spread(&c->at, data[W], mine[W]);
    else copy_view(&c->s.v[i], &c->at.v[i], size, data[i], mine[i]);
  }
  run_shape(c->parts, (void *[]){mine[role[0]], mine[role[1]]}, mine[to], o);
  if (o->k.failed || o->status) return;
  if (to == W) conv_parts_collect(&c->at, mine[W], data[W]);
  else if (c->copied[to])
    copy_view(&c->at.v[to], &c->s.v[to], (size_t)dtype_bytes(c->s.t[to]), mine[to], data[to]);
}

Err *conv_run(const Conv *c, const Op *op, void *const *in, void *const *out, bool *finite) {
  if (c->general) return conv_general_run(c->general, op, in, out);
  Outcome done = {.finite = true};
  Copies *k = &done.k;
  void *operand[2] = {in[0], in[1]}, *result = out[0];
  DType t = op->operands[0]->type->dtype, o = op_type(op)->dtype;
  int64_t results = type_count(op_type(op));
  int role[2];
  roles(&c->s, role);
  for (int i = 0; i < 2 && c->wide; i++) {
    int64_t n = type_count(op->operands[i]->type);
    if (t == computed_as(c, role[i])) continue;
    if (!(operand[i] = room(k, n, 4))) goto done;
    cpu_widen(t, in[i], operand[i], n);
  }
  if (c->wide && o != computed_as(c, c->s.result) && !(result = room(k, results, 4))) goto done;
  if (c->s.flip) {
    size_t size = c->wide ? (size_t)dtype_bytes(computed_as(c, role[1])) : (size_t)dtype_bytes(t);
    void *turned = room(k, type_count(op->operands[1]->type), size);
    if (!turned) goto done;
    cpu_permute(size, c->s.flip_rank, c->s.flip_dims, c->s.flip_strides,
                (const char *)operand[1] + c->s.flip_offset * (int64_t)size, turned);
    operand[1] = turned;
  }
  (c->parts ? run_parts : run_shape)(c, operand, result, &done);
  if (k->failed || done.status) goto done;
  if (may_leak(c))
    done.finite &= c->s.form == CONV_WEIGHTS
                       ? cpu_finite(o, result, results)
                       : cpu_finite(t, in[0], type_count(op->operands[0]->type));
  if (result != out[0]) cpu_narrow(o, result, out[0], results);
done:
  for (int i = 0; i < k->n; i++) cpu_block_free(k->p[i], k->bytes[i]);
  if (k->failed) return op_err(op, ERR_EXHAUSTED, "no memory for copies of its operands");
  if (done.status) return op_err(op, ERR_INTERNAL, "oneDNN fails with status %d", done.status);
  *finite = done.finite;
  return NULL;
}
