/* Manual computations over some of the mesh's axes. The other axes are free in the body: a value inside is the
 * part that the manual axes leave of one outside, and may be cut further. A value is cut by manual axes
 * first; of those what is inside knows nothing. */
#include "compile/spmd/propagate.h"
#include "compile/spmd/propagate_priv.h"

static bool is_manual(const Op *op, Str axis) {
  const Attr *all = op_attr(op, "manual_axes");
  for (int i = 0; all && all->kind == AT_ARRAY && i < all->n; i++)
    if (str_eq(all->items[i]->s, axis)) return true;
  return false;
}

bool manual_is_partial(const Mesh *mesh, const Op *op) {
  for (int i = 0; i < mesh->n_axes; i++) {
    bool manual = mesh->axes[i].size == 1;
    for (const Op *o = op; o && !manual; o = o->parent ? o->parent->parent : NULL)
      manual = o->kind == OP_MANUAL_COMPUTATION && is_manual(o, mesh->axes[i].name);
    if (!manual) return true;
  }
  return false;
}

/* Of a list of axes those that are manual, or those that are free. */
static Axes only(const Op *op, int n, const AxisRef *axes, bool manual) {
  Axes x = {0};
  for (int i = 0; i < n && x.n < MAX_AXES; i++)
    if (is_manual(op, axes[i].name) == manual) x.a[x.n++] = axes[i];
  return x;
}

static const Sharding *nth(const Op *op, const char *list, int i, const Value *v) {
  const Attr *a = op_attr(op, list);
  if (!a || a->kind != AT_ARRAY || i >= a->n || a->items[i]->kind != AT_SHARDING) return NULL;
  const Sharding *sh = a->items[i]->sharding;
  return v->type->kind == TY_TENSOR && v->type->rank == sh->n_dims ? sh : NULL;
}

static bool take(Spread *s, const Value *v, int d, Axes want) {
  Axes *has = &s->dims[v->id][d];
  if (!spread_begins(&want, has)) return false;
  want.n = spread_may_cut(s, v, d, &want);
  if (want.n <= has->n) return false;
  memcpy(has->a, want.a, sizeof *want.a * (size_t)want.n);
  has->n = want.n;
  return true;
}

void spread_seed_manual(Spread *s, Op *op) {
  if (!manual_is_partial(s->mesh, op)) return;
  *vec_push(&s->partial) = op;
  const Region *body = op->regions[0];
  for (int k = 0; k < op->n_operands; k++) {
    const Sharding *sh = nth(op, "in_shardings", k, body->args[k]);
    for (int d = 0; sh && d < sh->n_dims; d++) {
      Axes *x = &s->dims[body->args[k]->id][d];
      *x = only(op, sh->dims[d].n_axes, sh->dims[d].axes, false);
      x->closed = !sh->dims[d].open;
    }
  }
  for (int i = 0; i < op->n_results; i++) {
    const Sharding *sh = nth(op, "out_shardings", i, &op->results[i]);
    for (int d = 0; sh && d < sh->n_dims; d++)
      take(s, body->last->operands[i], d, only(op, sh->dims[d].n_axes, sh->dims[d].axes, false));
  }
}

/* Between a value outside and its part inside, along dimensions whose sharding there is open. */
static bool cross(Spread *s, const Op *op, const Value *outside, const Value *inside,
                  const Sharding *sh) {
  bool changed = false;
  for (int d = 0; sh && d < sh->n_dims; d++) {
    if (!sh->dims[d].open) continue;
    const Axes *out = &s->dims[outside->id][d], *in = &s->dims[inside->id][d];
    Axes all = only(op, sh->dims[d].n_axes, sh->dims[d].axes, true);
    for (int i = 0; i < in->n && all.n < MAX_AXES; i++) all.a[all.n++] = in->a[i];
    changed |= take(s, inside, d, only(op, out->n, out->a, false));
    changed |= take(s, outside, d, all);
  }
  return changed;
}

bool spread_cross(Spread *s) {
  bool changed = false;
  for (int i = 0; i < s->partial.n; i++) {
    const Op *op = s->partial.v[i];
    const Region *body = op->regions[0];
    for (int k = 0; k < op->n_operands; k++)
      changed |=
          cross(s, op, op->operands[k], body->args[k], nth(op, "in_shardings", k, op->operands[k]));
    for (int k = 0; k < op->n_results; k++)
      changed |= cross(s, op, &op->results[k], body->last->operands[k],
                       nth(op, "out_shardings", k, &op->results[k]));
  }
  return changed;
}
