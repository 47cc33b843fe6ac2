/* Shardings as block grids: cutting a whole tensor into the blocks of the processes and joining
 * them again.
 *
 * A sharding gives each dimension a list of mesh axes, the first one slowest. The block of a
 * process along a dimension is the number its coordinates on those axes spell. The older form,
 * "{devices=[2,4]<=[8]}", becomes a mesh whose axes are the tile dimensions and whose device order
 * is the list given.
 */
#include "interp/sharding.h"

#include "interp/interp_priv.h"

#include "ir/mesh.h"

/* ---- whole tensors and their blocks -------------------------------------------------------- */

static Tensor *cut_block(const Tensor *whole, const int64_t *parts, const int64_t *index) {
  int64_t start[MAX_RANK], size[MAX_RANK];
  for (int d = 0; d < whole->rank; d++) {
    size[d] = (whole->dims[d] + parts[d] - 1) / parts[d];
    start[d] = size[d] * index[d];
  }
  return tensor_cut(whole, start, size);
}

static void paste_block(Tensor *whole, const Tensor *block, const int64_t *index) {
  int64_t start[MAX_RANK];
  for (int d = 0; d < whole->rank; d++) start[d] = block->dims[d] * index[d];
  tensor_paste(whole, start, block);
}

static bool all_ones(const int64_t *parts, int n) {
  for (int i = 0; i < n; i++)
    if (parts[i] != 1) return false;
  return true;
}

/* ---- unreduced axes: the blocks of the devices along them add up to the value -------------- */

/* The number that a position's coordinates on the unreduced axes spell, and how many there are. */
static int64_t unreduced_at(const Sharding *s, const Mesh *mesh, int64_t position, int64_t *count) {
  int64_t id = 0;
  *count = 1;
  for (int i = 0; i < s->n_unreduced; i++)
    for (int axis = 0; axis < mesh->n_axes; axis++)
      if (str_eq(mesh->axes[axis].name, s->unreduced[i].name)) {
        id = id * mesh->axes[axis].size + mesh_coordinate(mesh, axis, position);
        *count *= mesh->axes[axis].size;
      }
  return id;
}

static void add_into(Tensor *to, const Tensor *more) {
  DType t = dtype_real_of(to->dtype);
  int64_t n = dtype_is_complex(to->dtype) ? 2 * to->count : to->count;
  size_t size = (size_t)dtype_bytes(t);
  for (int64_t i = 0; i < n; i++) {
    char *a = (char *)to->data + (size_t)i * size;
    const char *b = (const char *)more->data + (size_t)i * size;
    if (dtype_is_float(t)) elem_set_f64(t, a, elem_get_f64(t, a) + elem_get_f64(t, b));
    else elem_set_i64(t, a, (int64_t)((uint64_t)elem_get_i64(t, a) + (uint64_t)elem_get_i64(t, b)));
  }
}

/* Adds a block to what is already at its place. */
static void paste_sum(Tensor *whole, const Tensor *block, const int64_t *index) {
  int64_t start[MAX_RANK];
  for (int d = 0; d < whole->rank; d++) start[d] = block->dims[d] * index[d];
  Tensor *sum = tensor_cut(whole, start, block->dims);
  add_into(sum, block);
  tensor_paste(whole, start, sum);
  tensor_release(sum);
}

Err *shard_dims(const Sharding *s, const Mesh *mesh, int rank, const int64_t *dims, int64_t *out) {
  int64_t parts[MAX_RANK], index[MAX_RANK];
  if (rank > MAX_RANK) return err_new(ERR_UNIMPLEMENTED, "rank %d is over %d", rank, MAX_RANK);
  bool cut = s && mesh && mesh->n_axes;
  if (cut) TRY(mesh_blocks(s, mesh, rank, 0, NULL, 0, parts, index));
  for (int d = 0; d < rank; d++) out[d] = cut ? (dims[d] + parts[d] - 1) / parts[d] : dims[d];
  return NULL;
}

Err *shard_cut(const Tensor *whole, const Sharding *s, const Mesh *mesh, int64_t p, Tensor **out) {
  int64_t parts[MAX_RANK], index[MAX_RANK];
  if (whole->rank > MAX_RANK)
    return err_new(ERR_UNIMPLEMENTED, "rank %d is over %d", whole->rank, MAX_RANK);
  if (!s || !mesh || !mesh->n_axes) {
    *out = tensor_retain((Tensor *)whole);
    return NULL;
  }
  int64_t at = mesh_position(mesh, p);
  if (at < 0) return err_new(ERR_INVALID, "device %lld is not in the mesh", (long long)p);
  TRY(mesh_blocks(s, mesh, whole->rank, at, NULL, 0, parts, index));
  if (whole->phantom) {
    TRY(shard_dims(s, mesh, whole->rank, whole->dims, index));
    *out = tensor_phantom(whole->dtype, whole->rank, index);
    return NULL;
  }
  *out = all_ones(parts, whole->rank) ? tensor_retain((Tensor *)whole)
                                      : cut_block(whole, parts, index);
  int64_t count;
  if (s->n_unreduced &&
      unreduced_at(s, mesh, at, &count)) { /* the first one holds the value, the others zero */
    Tensor *zero = tensor_zeros((*out)->dtype, (*out)->rank, (*out)->dims);
    tensor_release(*out);
    *out = zero;
  }
  return NULL;
}

Err *shard_owners(const Sharding *s, const Mesh *mesh, int rank, int n, int *owner) {
  if (rank > MAX_RANK) return err_new(ERR_UNIMPLEMENTED, "rank %d is over %d", rank, MAX_RANK);
  int64_t parts[MAX_RANK], index[MAX_RANK], terms, *id = xmalloc(sizeof *id * (size_t)n);
  Err *e = NULL;
  for (int p = 0; p < n && !e; p++) {
    int64_t at = mesh_position(mesh, p);
    if (at < 0) e = err_new(ERR_INVALID, "device %d is not in the mesh", p);
    else e = mesh_blocks(s, mesh, rank, at, NULL, 0, parts, index);
    id[p] = e ? 0 : unreduced_at(s, mesh, at, &terms);
    for (int d = 0; d < rank && !e; d++) id[p] = id[p] * parts[d] + index[d];
    owner[p] = 0;
    while (id[owner[p]] != id[p]) owner[p]++;
  }
  free(id);
  return e;
}

Err *shard_join(Tensor *const *blocks, int n, const Sharding *s, const Mesh *mesh, int rank,
                const int64_t *dims, Tensor **out) {
  int64_t parts[MAX_RANK], index[MAX_RANK];
  if (rank > MAX_RANK) return err_new(ERR_UNIMPLEMENTED, "rank %d is over %d", rank, MAX_RANK);
  if (!s || !mesh || !mesh->n_axes) {
    *out = tensor_retain(blocks[0]);
    return NULL;
  }
  TRY(mesh_blocks(s, mesh, rank, 0, NULL, 0, parts, index));
  int64_t terms = 1;
  unreduced_at(s, mesh, 0, &terms);
  if (all_ones(parts, rank) && terms == 1) {
    *out = tensor_retain(blocks[0]);
    return NULL;
  }
  if (blocks[0]->phantom) {
    *out = tensor_phantom(blocks[0]->dtype, rank, dims);
    return NULL;
  }
  Tensor *t;
  TRY(tensor_new(blocks[0]->dtype, rank, dims, &t));
  memset(t->data, 0, tensor_bytes(t));
  uint8_t *done = xcalloc((size_t)(dims_count(rank, parts) * terms), 1);
  Err *e = NULL;
  for (int p = 0; p < n && !e; p++) {
    int64_t at = mesh_position(mesh, p), id = 0;
    if (at < 0) continue;
    e = mesh_blocks(s, mesh, rank, at, NULL, 0, parts, index);
    for (int d = 0; d < rank && !e; d++) id = id * parts[d] + index[d];
    id = id * terms + unreduced_at(s, mesh, at, &terms);
    if (e || done[id]) continue;
    done[id] = 1;
    if (terms > 1) paste_sum(t, blocks[p], index);
    else paste_block(t, blocks[p], index);
  }
  free(done);
  if (e) tensor_release(t);
  else *out = t;
  return e;
}

/* ---- the older form ------------------------------------------------------------------------ */

typedef struct Scan {
  const char *p, *end;
} Scan;

static void skip(Scan *s) {
  while (s->p < s->end && (*s->p == ' ' || *s->p == '\n')) s->p++;
}
static bool eat(Scan *s, const char *word) {
  skip(s);
  size_t n = strlen(word);
  if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0) return false;
  s->p += n;
  return true;
}
static bool number(Scan *s, int64_t *out) {
  skip(s);
  if (s->p == s->end || *s->p < '0' || *s->p > '9') return false;
  for (*out = 0; s->p < s->end && *s->p >= '0' && *s->p <= '9' && *out < INT64_MAX / 16; s->p++)
    *out = *out * 10 + (*s->p - '0');
  return true;
}
static int number_list(Scan *s, char close, int64_t *out, int room) {
  int n = 0;
  char word[2] = {close, 0};
  while (!eat(s, word)) {
    if (n == room || !number(s, &out[n])) return -1;
    n++;
    eat(s, ",");
  }
  return n;
}

#define MAX_TILE (MAX_RANK + 8)

/* The list of devices in tile order, n of them. */
static bool device_list(Scan *s, int64_t n, int64_t *ids) {
  if (eat(s, "<=")) {
    int64_t dims[MAX_TILE], perm[MAX_TILE], steps[MAX_TILE], out[MAX_TILE], out_steps[MAX_TILE];
    int rank = eat(s, "[") ? number_list(s, ']', dims, MAX_TILE) : -1;
    if (rank < 0 || dims_count(rank, dims) != n) return false;
    for (int i = 0; i < rank; i++) perm[i] = i;
    if (eat(s, "T") && (!eat(s, "(") || number_list(s, ')', perm, rank) != rank)) return false;
    dims_strides(rank, dims, steps);
    for (int i = 0; i < rank; i++) {
      if (perm[i] < 0 || perm[i] >= rank) return false;
      out[i] = dims[perm[i]];
      out_steps[i] = steps[perm[i]];
    }
    int64_t index[MAX_TILE] = {0};
    for (int64_t i = 0; i < n; i++) {
      ids[i] = index_linear(rank, out_steps, index);
      index_next(rank, out, index);
    }
    return true;
  }
  for (int64_t i = 0; i < n; i++) {
    if (i && !eat(s, ",")) return false;
    if (!number(s, &ids[i])) return false;
  }
  return true;
}

Err *sharding_from_gspmd(Module *m, Str text, int rank, int n_devices, Sharding **out,
                         Mesh **out_mesh) {
  *out = NULL;
  *out_mesh = NULL;
  Scan s = {text.p, text.p + text.n};
  if (!text.n || !eat(&s, "{"))
    return err_new(ERR_INVALID, "not a sharding: '%.*s'", STR_ARG(text));
  if (eat(&s, "replicated") || eat(&s, "manual") || eat(&s, "maximal") || eat(&s, "unknown") ||
      eat(&s, "unreduced") || eat(&s, "}"))
    return NULL;
  if (*s.p == '{')
    return err_new(ERR_UNIMPLEMENTED, "a sharding for a tuple: '%.*s'", STR_ARG(text));
  int64_t tile[MAX_TILE];
  int n_tile = eat(&s, "devices=") && eat(&s, "[") ? number_list(&s, ']', tile, MAX_TILE) : -1;
  int64_t n = 1;
  for (int i = 0; i < n_tile && n <= n_devices; i++) n *= tile[i];
  if (n_tile < rank || n != n_devices)
    return err_new(ERR_INVALID, "the sharding '%.*s' does not fit rank %d on %d devices",
                   STR_ARG(text), rank, n_devices);
  int64_t *ids = arena_alloc(m->arena, sizeof *ids * (size_t)n);
  if (!device_list(&s, n, ids))
    return err_new(ERR_INVALID, "no list of %lld devices in '%.*s'", (long long)n, STR_ARG(text));
  Mesh *mesh = ARENA_NEW(m->arena, Mesh);
  Sharding *sh = ARENA_NEW(m->arena, Sharding);
  mesh->axes = ARENA_ARRAY(m->arena, MeshAxis, n_tile);
  mesh->n_axes = n_tile;
  mesh->n_ids = (int)n;
  mesh->ids = ids;
  bool identity = true;
  for (int64_t i = 0; i < n; i++) identity &= ids[i] == i;
  if (identity) mesh->n_ids = 0;
  for (int i = 0; i < n_tile; i++)
    mesh->axes[i] = (MeshAxis){arena_printf(m->arena, i < rank ? "d%d" : "r%d", i), tile[i]};
  sh->mesh = mesh;
  sh->n_dims = rank;
  sh->dims = ARENA_ARRAY(m->arena, DimSharding, rank);
  for (int i = 0; i < rank; i++) {
    sh->dims[i].priority = -1;
    if (tile[i] == 1) continue;
    sh->dims[i].n_axes = 1;
    sh->dims[i].axes = ARENA_NEW(m->arena, AxisRef);
    sh->dims[i].axes[0].name = mesh->axes[i].name;
  }
  *out = sh;
  *out_mesh = mesh;
  return NULL;
}

/* ---- manual computations ------------------------------------------------------------------- */

static const Sharding *nth_sharding(const Op *op, const char *attr, int i) {
  const Attr *a = op_attr(op, attr);
  if (!a || a->kind != AT_ARRAY || i >= a->n || a->items[i]->kind != AT_SHARDING) return NULL;
  return a->items[i]->sharding;
}

static Err *mesh_of(const Op *op, const Run *run, const Sharding *s, const Mesh **out) {
  const Mesh *mesh = s->mesh       ? s->mesh
                     : run->module ? module_mesh(run->module, s->mesh_name)
                                   : NULL;
  if (!mesh) return op_err(op, ERR_INVALID, "no mesh @%.*s", STR_ARG(s->mesh_name));
  int64_t n = mesh_size(mesh);
  if (n != run->partitions && n != 1)
    return err_hint(op_err(op, ERR_INVALID, "a mesh of %lld devices in a run on %d partitions",
                           (long long)n, run->partitions),
                    "run on as many devices, for example --device interp:%lld", (long long)n);
  *out = mesh;
  return NULL;
}

/* The processes whose values make up the result for process p: same replica, same coordinates on
 * the axes that are not manual here. */
static bool same_class(const Mesh *mesh, const Run *run, const Str *manual, int n_manual, int p,
                       int q) {
  if (p / run->partitions != q / run->partitions) return false;
  if (mesh_size(mesh) == 1) return p == q;
  int64_t a = mesh_position(mesh, p % run->partitions),
          b = mesh_position(mesh, q % run->partitions);
  for (int i = 0; i < mesh->n_axes; i++)
    if (!mesh_lists(manual, n_manual, mesh->axes[i].name) &&
        mesh_coordinate(mesh, i, a) != mesh_coordinate(mesh, i, b))
      return false;
  return true;
}

static int64_t position_of(const Mesh *mesh, const Run *run, int p) {
  return mesh_size(mesh) == 1 ? 0 : mesh_position(mesh, p % run->partitions);
}

static Err *manual_cut(Eval *e, int i, const Str *manual, int n_manual, Shards *out) {
  const Sharding *s = nth_sharding(e->op, "in_shardings", i);
  const Shards *in = &e->sin[i];
  if (!s || e->op->operands[i]->type->kind == TY_TOKEN) {
    *out = shards_retain(in);
    return NULL;
  }
  const Mesh *mesh;
  TRY(mesh_of(e->op, e->run, s, &mesh));
  int n = e->ctx->n;
  *out = shards_many(n);
  for (int p = 0; p < n; p++) {
    if (!e->ctx->active[p]) continue;
    int64_t parts[MAX_RANK], index[MAX_RANK];
    Tensor *t = shards_at(in, p);
    Err *err =
        mesh_blocks(s, mesh, t->rank, position_of(mesh, e->run, p), manual, n_manual, parts, index);
    for (int d = 0; d < t->rank && !err; d++)
      if (t->dims[d] % parts[d])
        err = op_err(e->op, ERR_INVALID,
                     "dimension %d of operand %d, of size %lld, cannot be cut into %lld blocks", d,
                     i, (long long)t->dims[d], (long long)parts[d]);
    if (err) return err;
    int64_t count;
    if (s->n_unreduced && unreduced_at(s, mesh, position_of(mesh, e->run, p), &count)) {
      int64_t dims[MAX_RANK];
      for (int d = 0; d < t->rank; d++) dims[d] = t->dims[d] / parts[d];
      out->t[p] = tensor_zeros(t->dtype, t->rank, dims);
      continue;
    }
    out->t[p] = all_ones(parts, t->rank) ? tensor_retain(t) : cut_block(t, parts, index);
  }
  return NULL;
}

/* The result of operand p's class. */
static Err *manual_join(Eval *e, int i, const Shards *res, const Str *manual, int n_manual, int p,
                        Tensor **out) {
  const Sharding *s = nth_sharding(e->op, "out_shardings", i);
  Tensor *own = shards_at(res, p);
  const Mesh *mesh;
  int64_t parts[MAX_RANK], index[MAX_RANK], dims[MAX_RANK];
  if (!s || own->dtype == DT_TOKEN) {
    *out = tensor_retain(own);
    return NULL;
  }
  TRY(mesh_of(e->op, e->run, s, &mesh));
  TRY(mesh_blocks(s, mesh, own->rank, position_of(mesh, e->run, p), manual, n_manual, parts,
                  index));
  int64_t terms = 1;
  unreduced_at(s, mesh, 0, &terms);
  if (all_ones(parts, own->rank) && terms == 1) {
    *out = tensor_retain(own);
    return NULL;
  }
  uint8_t *done = xcalloc((size_t)(dims_count(own->rank, parts) * terms), 1);
  for (int d = 0; d < own->rank; d++) dims[d] = own->dims[d] * parts[d];
  Tensor *t = tensor_zeros(own->dtype, own->rank, dims);
  for (int q = e->ctx->n - 1; q >= 0; q--) { /* of equal blocks the first one stays */
    if (!same_class(mesh, e->run, manual, n_manual, p, q)) continue;
    Err *err = e->ctx->active[q]
                   ? NULL
                   : op_err(e->op, ERR_PRECONDITION, "process %d does not come here", q);
    if (!err)
      err = mesh_blocks(s, mesh, own->rank, position_of(mesh, e->run, q), manual, n_manual, parts,
                        index);
    if (err) {
      tensor_release(t);
      free(done);
      return err;
    }
    if (terms > 1) {
      int64_t id = 0;
      for (int d = 0; d < own->rank; d++) id = id * parts[d] + index[d];
      id = id * terms + unreduced_at(s, mesh, position_of(mesh, e->run, q), &terms);
      if (!done[id]) paste_sum(t, shards_at(res, q), index);
      done[id] = 1;
    } else {
      paste_block(t, shards_at(res, q), index);
    }
  }
  free(done);
  *out = t;
  return NULL;
}

Err *sem_manual_computation(Eval *e) {
  const Op *op = e->op;
  const Region *body = op->regions[0];
  const Attr *axes = op_attr(op, "manual_axes");
  int n_manual = axes && axes->kind == AT_ARRAY ? axes->n : 0, n = e->ctx->n;
  Str *manual = xcalloc((size_t)n_manual + 1, sizeof *manual);
  for (int i = 0; i < n_manual; i++) manual[i] = axes->items[i]->s;
  if (body->n_args != e->n_in || body->last->n_operands != e->n_out) {
    free(manual);
    return op_err(op, ERR_INVALID, "the body takes %d arguments and gives %d results", body->n_args,
                  body->last->n_operands);
  }
  Shards *args = xcalloc((size_t)e->n_in + 1, sizeof *args),
         *res = xcalloc((size_t)e->n_out + 1, sizeof *res);
  Err *err = NULL;
  for (int i = 0; i < e->n_in && !err; i++) err = manual_cut(e, i, manual, n_manual, &args[i]);
  Ctx in = *e->ctx;
  in.n_manual = e->ctx->n_manual + n_manual;
  if (!err) err = ctx_run_region(&in, body, args, res);
  /* outside of all manual computations a value is whole, the same for every process of a replica */
  bool one = e->ctx->n_manual == 0 && e->run->replicas == 1;
  int first = 0;
  while (first < n - 1 && !e->ctx->active[first]) first++;
  for (int i = 0; i < e->n_out && !err; i++) {
    e->sout[i] = shards_many(one ? 1 : n);
    for (int p = first; p < n && !err; p++) {
      if (!e->ctx->active[p]) continue;
      err = manual_join(e, i, &res[i], manual, n_manual, p, &e->sout[i].t[one ? 0 : p]);
      if (one) break;
    }
  }
  for (int i = 0; i < e->n_in; i++) shards_free(&args[i]);
  for (int i = 0; i < e->n_out; i++) shards_free(&res[i]);
  free(args);
  free(res);
  free(manual);
  return err;
}

/* ---- custom calls of the older form -------------------------------------------------------- */

static Str attrs_sharding(const NamedAttr *attrs, int n) {
  const Attr *a = attrs_get(attrs, n, "mhlo.sharding");
  return a && a->kind == AT_STRING ? a->s : (Str){0};
}

/* What is known of a value's sharding: of the Sharding call that makes it, or of the argument it
 * is. */
static Str value_sharding(const Value *v) {
  if (v->def) return attrs_sharding(v->def->attrs, v->def->n_attrs);
  const Func *f = v->region && !v->region->parent ? v->region->func : NULL;
  return f && f->arg_attrs ? attrs_sharding(f->arg_attrs[v->index], f->n_arg_attrs[v->index])
                           : (Str){0};
}

static Err *identity(Eval *e) {
  for (int i = 0; i < e->n_out; i++) e->sout[i] = shards_retain(&e->sin[i]);
  return NULL;
}

/* Blocks of a dimension count only if the declared shapes differ there: with manual subgroups a
 * sharding may name more. */
static Err *spmd_parts(Eval *e, const Sharding *s, const Mesh *mesh, int p, const Type *full,
                       const Type *local, int64_t *parts, int64_t *index) {
  int64_t at = mesh_position(mesh, p % e->run->partitions);
  TRY(mesh_blocks(s, mesh, full->rank, at, NULL, 0, parts, index));
  for (int d = 0; d < full->rank; d++) {
    if (full->dims[d] == local->dims[d]) parts[d] = 1, index[d] = 0;
    else if (local->dims[d] * parts[d] != full->dims[d])
      return op_err(e->op, ERR_INVALID, "dimension %d: %lld blocks of %lld are not %lld", d,
                    (long long)parts[d], (long long)local->dims[d], (long long)full->dims[d]);
  }
  return NULL;
}

static Err *spmd_call(Eval *e, bool to_shards) {
  const Op *op = e->op;
  Str text = to_shards ? value_sharding(op->operands[0]) : attrs_sharding(op->attrs, op->n_attrs);
  const Type *full = to_shards ? op->operands[0]->type : op->results[0].type;
  const Type *local = to_shards ? op->results[0].type : op->operands[0]->type;
  if (!type_is_static(full) || !type_is_static(local) || full->rank != local->rank)
    return op_err(op, ERR_INVALID, "shapes of the whole and the part do not fit");
  Module *scratch = module_new();
  Sharding *s = NULL;
  Mesh *mesh = NULL;
  Err *err =
      text.n ? sharding_from_gspmd(scratch, text, full->rank, e->run->partitions, &s, &mesh) : NULL;
  int n = e->ctx->n;
  int64_t parts[MAX_RANK], index[MAX_RANK];
  if (!err && !s) {
    for (int d = 0; d < full->rank && !err; d++)
      if (full->dims[d] != local->dims[d])
        err = op_err(op, ERR_INVALID, "no sharding says how to divide dimension %d", d);
    if (!err) {
      e->sout[0] = shards_retain(&e->sin[0]);
      if (!to_shards && e->run->replicas == 1 && e->ctx->n_manual == 0 && e->sout[0].n > 1) {
        int first = 0;
        while (first < n - 1 && !e->ctx->active[first]) first++;
        Tensor *t = tensor_retain(e->sout[0].t[first]);
        shards_free(&e->sout[0]);
        e->sout[0] = shards_one(t);
      }
    }
  } else if (!err && to_shards) {
    e->sout[0] = shards_many(n);
    for (int p = 0; p < n && !err; p++) {
      if (!e->ctx->active[p]) continue;
      err = spmd_parts(e, s, mesh, p, full, local, parts, index);
      if (!err) e->sout[0].t[p] = cut_block(shards_at(&e->sin[0], p), parts, index);
    }
  } else if (!err) {
    bool one = e->run->replicas == 1;
    e->sout[0] = shards_many(one ? 1 : n);
    for (int r = 0; r < e->run->replicas && !err; r++) {
      Tensor *t = tensor_zeros(full->dtype, full->rank, full->dims);
      for (int q = e->run->partitions - 1; q >= 0 && !err; q--) {
        int p = r * e->run->partitions + q;
        if (!e->ctx->active[p])
          err = op_err(op, ERR_PRECONDITION, "process %d does not come here", p);
        if (!err) err = spmd_parts(e, s, mesh, p, full, local, parts, index);
        if (!err) paste_block(t, shards_at(&e->sin[0], p), index);
      }
      for (int q = 0; q < e->run->partitions && !one && !err; q++)
        e->sout[0].t[r * e->run->partitions + q] = tensor_retain(t);
      if (one && !err) e->sout[0].t[0] = tensor_retain(t);
      tensor_release(t);
    }
  }
  module_free(scratch);
  return err;
}

static Err *full_to_shard(Eval *e) { return spmd_call(e, true); }
static Err *shard_to_full(Eval *e) { return spmd_call(e, false); }

SemFn spmd_custom_call(const Op *op) {
  if (op->kind != OP_CUSTOM_CALL || op->n_operands != 1 || op->n_results != 1) return NULL;
  Str t = op_str(op, "call_target_name");
  if (str_is(t, "Sharding")) return identity;
  if (str_is(t, "SPMDFullToShardShape")) return full_to_shard;
  if (str_is(t, "SPMDShardToFullShape")) return shard_to_full;
  return NULL;
}
