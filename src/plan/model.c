/* What follows from a model's shape: kinds of layers, parameters, operations. */
#include <math.h>

#include "plan/plan_priv.h"

static double value_dim(const PlanModel *m) {
  return m->value_dim > 0 ? m->value_dim : m->head_dim;
}

static int hybrid_kinds(const PlanModel *m, LayerKind *out) {
  const char *letters = "ME*-";
  int n = 0;
  for (const char *c = letters; *c; c++) {
    LayerKind k = {.mamba = *c == 'M', .moe = *c == 'E', .attention = *c == '*', .mlp = *c == '-'};
    k.global = true;
    for (const char *p = m->pattern; *p; p++) k.count += *p == *c;
    if (k.count > 0) out[n++] = k;
  }
  return n;
}

int plan_layer_kinds(const PlanModel *m, LayerKind *out) {
  if (*m->pattern) return hybrid_kinds(m, out);
  double moe = m->experts > 0 ? m->layers - m->dense_layers + m->mtp_layers : 0;
  double dense = m->layers + m->mtp_layers - moe;
  double global = m->window > 0 ? (m->period > 0 ? 1.0 / m->period : 0) : 1;
  int n = 0;
  for (int i = 0; i < 4; i++) {
    double count = (i & 1 ? moe : dense) * (i & 2 ? 1 - global : global);
    if (count <= 0) continue;
    out[n++] = (LayerKind){
        .attention = true, .global = !(i & 2), .mlp = !(i & 1), .moe = i & 1, .count = count};
  }
  return n;
}

static double attention_parameters(const PlanModel *m, bool global) {
  double a = m->heads, g = m->kv_heads, d = m->head_dim, h = m->hidden, v = value_dim(m);
  if (m->latent) {
    double nope = d - m->rope_dim;
    double q = m->q_rank > 0 ? m->q_rank * (h + a * d) : h * a * d;
    return q + h * (m->kv_rank + m->rope_dim) + m->kv_rank * a * (nope + v) + a * v * h;
  }
  if (global && m->global_dim > 0) {
    d = v = m->global_dim;
    if (m->global_kv_heads > 0) g = m->global_kv_heads;
  }
  return h * (a * d + g * (d + v)) + a * v * h;
}

static double mamba_parameters(const PlanModel *m) {
  double inner = m->mamba_heads * m->mamba_dim, state = 2 * m->mamba_groups * m->mamba_state;
  return m->hidden * (2 * inner + state + m->mamba_heads) + inner * m->hidden + 4 * (inner + state);
}

double plan_layer_parameters(const PlanModel *m, const LayerKind *kind, double *experts) {
  double matrices = m->gated ? 3 : 2, sum = 0;
  *experts = 0;
  if (kind->attention) sum += attention_parameters(m, kind->global);
  if (kind->mlp) sum += matrices * m->hidden * m->ffn;
  if (kind->mamba) sum += mamba_parameters(m);
  if (kind->moe) {
    *experts = m->experts * matrices * m->hidden * m->expert_ffn;
    sum += *experts + m->hidden * m->experts + matrices * m->hidden * m->shared_ffn;
  }
  return sum;
}

double plan_embedding_parameters(const PlanModel *m, bool head) {
  return head && m->tied ? 0 : m->vocab * m->hidden;
}

double plan_usual_seq(const PlanModel *m) { return m->context > 0 ? MIN(4096, m->context) : 4096; }

double plan_parameters(const PlanModel *m) {
  if (!m->layers) return m->parameters;
  LayerKind kind[LAYER_KINDS];
  double sum = plan_embedding_parameters(m, false) + plan_embedding_parameters(m, true), experts;
  if (m->learned) sum += m->context * m->hidden;
  for (int i = 0, n = plan_layer_kinds(m, kind); i < n; i++)
    sum += kind[i].count * plan_layer_parameters(m, &kind[i], &experts);
  return sum;
}

/* Keys that a query sees on average. */
double plan_keys_seen(const PlanModel *m, bool global, double seq) {
  double w = global || m->window <= 0 ? seq : MIN(seq, m->window);
  if (m->bidirectional) return w;
  return w * (1 - w / (2 * seq));
}

double plan_flops_per_token(const PlanModel *m, double seq) {
  LayerKind kind[LAYER_KINDS];
  double p = m->vocab * m->hidden * (1 + m->mtp_layers) * (m->masked > 0 ? m->masked : 1), a = 0;
  for (int i = 0, n = plan_layer_kinds(m, kind); i < n; i++) {
    const LayerKind *k = &kind[i];
    double experts, all = plan_layer_parameters(m, k, &experts);
    if (m->experts > 0) all -= experts * (1 - (double)m->active / m->experts);
    p += k->count * all;
    double width = k->global && m->global_dim > 0 ? 2 * m->global_dim : m->head_dim + value_dim(m);
    if (k->attention) a += k->count * m->heads * width * plan_keys_seen(m, k->global, seq);
  }
  return 6 * (p + a);
}
