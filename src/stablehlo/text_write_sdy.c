/* Meshes and shardings as Shardy spells them. */
#include "stablehlo/text_write_priv.h"

static void axis_ref(Buf *b, const AxisRef *a) {
  tw_quoted(b, a->name);
  if (a->sub_size) buf_printf(b, ":(%lld)%lld", (long long)a->sub_pre, (long long)a->sub_size);
}

static void axis_set(Buf *b, const AxisRef *v, int n) {
  buf_byte(b, '{');
  for (int i = 0; i < n; i++) {
    if (i) buf_cstr(b, ", ");
    axis_ref(b, &v[i]);
  }
  buf_byte(b, '}');
}

void tw_mesh(Buf *b, const Mesh *m) {
  buf_cstr(b, "<[");
  for (int i = 0; i < m->n_axes; i++) {
    if (i) buf_cstr(b, ", ");
    tw_quoted(b, m->axes[i].name);
    buf_printf(b, "=%lld", (long long)m->axes[i].size);
  }
  buf_byte(b, ']');
  if (m->n_ids) {
    buf_cstr(b, ", device_ids=[");
    for (int i = 0; i < m->n_ids; i++) buf_printf(b, i ? ", %lld" : "%lld", (long long)m->ids[i]);
    buf_byte(b, ']');
  }
  buf_byte(b, '>');
}

void tw_sharding(Buf *b, const Sharding *s) {
  buf_byte(b, '<');
  if (s->mesh) {
    buf_cstr(b, "mesh");
    tw_mesh(b, s->mesh);
  } else {
    tw_symbol(b, s->mesh_name);
  }
  buf_cstr(b, ", [");
  for (int i = 0; i < s->n_dims; i++) {
    const DimSharding *d = &s->dims[i];
    buf_cstr(b, i ? ", {" : "{");
    for (int k = 0; k < d->n_axes; k++) {
      if (k) buf_cstr(b, ", ");
      axis_ref(b, &d->axes[k]);
    }
    if (d->open) buf_cstr(b, d->n_axes ? ", ?" : "?");
    buf_byte(b, '}');
    if (d->priority >= 0) buf_printf(b, "p%lld", (long long)d->priority);
  }
  buf_byte(b, ']');
  if (s->n_replicated) {
    buf_cstr(b, ", replicated=");
    axis_set(b, s->replicated, s->n_replicated);
  }
  if (s->n_unreduced) {
    buf_cstr(b, ", unreduced=");
    axis_set(b, s->unreduced, s->n_unreduced);
  }
  buf_byte(b, '>');
}

void tw_sharding_list(Buf *b, const Attr *a) {
  buf_byte(b, '[');
  for (int i = 0; i < a->n; i++) {
    if (i) buf_cstr(b, ", ");
    if (a->items[i]->kind == AT_SHARDING) tw_sharding(b, a->items[i]->sharding);
  }
  buf_byte(b, ']');
}

void tw_axes(Buf *b, const Attr *a) {
  buf_byte(b, '{');
  for (int i = 0; i < a->n; i++) {
    if (i) buf_cstr(b, ", ");
    tw_quoted(b, a->items[i]->s);
  }
  buf_byte(b, '}');
}
