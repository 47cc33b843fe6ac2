/* Is a network of config.json the one that weft builds? Weights of the same shapes mean another where heads, a
 * normalisation's epsilon, an activation or positions differ. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

#include "infer/hub.h"

typedef struct Check {
  const cJSON *root;
  const char *model;
  Err *e;
} Check;

static void differs(Check *k, const char *key, const char *there, const char *here) {
  if (k->e) return;
  k->e = err_new(ERR_UNIMPLEMENTED, "its config.json has %s %s, weft's '%s' %s", key, there,
                 k->model, here);
  err_hint(k->e, "as a program of its own it trains and predicts: docs/guide/own-networks.md");
}

static const cJSON *item(const cJSON *in, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(in, key);
}

static void number(Check *k, const cJSON *in, const char *key, double has) {
  const cJSON *v = item(in, key);
  if (!cJSON_IsNumber(v) || fabs(v->valuedouble - has) <= 1e-6 * fabs(has)) return;
  char there[32], here[32];
  snprintf(there, sizeof there, "%.10g", v->valuedouble);
  snprintf(here, sizeof here, "%.10g", has);
  differs(k, key, there, here);
}

static void truth(Check *k, const char *key, bool has) {
  const cJSON *v = item(k->root, key);
  if (cJSON_IsBool(v) && cJSON_IsTrue(v) != has)
    differs(k, key, has ? "false" : "true", has ? "true" : "false");
}

/* words: those that are right, with blanks between. */
static void word(Check *k, const cJSON *in, const char *key, const char *words) {
  const cJSON *v = item(in, key);
  if (!cJSON_IsString(v)) return;
  size_t n = strlen(v->valuestring);
  for (const char *p = words; *p; p += strcspn(p, " "), p += *p == ' ')
    if (strcspn(p, " ") == n && !strncmp(p, v->valuestring, n)) return;
  char *there = xasprintf("'%.40s'", v->valuestring), *here = xasprintf("'%s'", words);
  differs(k, key, there, here);
  free(there), free(here);
}

/* Slower angles of long contexts (Dubey et al. 2024). */
static void slowed(Check *k, const cJSON *in, const Rotary *r) {
  bool slow = r->factor > 1;
  word(k, in, "rope_type", slow ? "llama3" : "default");
  word(k, in, "type", slow ? "llama3" : "default");
  if (!slow) return;
  number(k, in, "factor", r->factor);
  number(k, in, "low_freq_factor", r->low);
  number(k, in, "high_freq_factor", r->high);
  number(k, in, "original_max_position_embeddings", r->context);
}

/* Rotary angles: an older config has rope_theta and rope_scaling, a newer one rope_parameters. */
static void positions(Check *k, const Rotary *r) {
  const cJSON *scaled = item(k->root, "rope_scaling"), *both = item(k->root, "rope_parameters");
  word(k, k->root, "position_embedding_type", "absolute");
  if (!(r->theta > 0)) return;
  number(k, k->root, "rope_theta", r->theta);
  number(k, both, "rope_theta", r->theta);
  slowed(k, scaled, r);
  slowed(k, both, r);
  if (r->factor > 1 && k->root && !cJSON_IsObject(scaled) && !cJSON_IsObject(both))
    differs(k, "rope_scaling", "null", "'llama3'");
}

Err *hub_check(const char *path, const char *model, const NetShape *s, int64_t length) {
  cJSON *root = hub_config(path);
  Check k = {root, model, NULL};
  number(&k, root, "n_head", (double)s->heads);
  number(&k, root, "num_attention_heads", (double)s->heads);
  number(&k, root, "num_key_value_heads", (double)s->kv_heads);
  number(&k, root, "head_dim", (double)s->width / (double)s->heads);
  static const char *const eps[] = {"layer_norm_epsilon", "layer_norm_eps", "rms_norm_eps"};
  for (int i = 0; i < COUNT_OF(eps); i++) number(&k, root, eps[i], s->eps);
  word(&k, root, "activation_function", s->act);
  word(&k, root, "hidden_act", s->act);
  truth(&k, "tie_word_embeddings", s->tied);
  truth(&k, "attention_bias", false);
  truth(&k, "mlp_bias", false);
  truth(&k, "scale_attn_weights", true);
  truth(&k, "scale_attn_by_inverse_layer_idx", false);
  positions(&k, &s->rotary);
  const cJSON *window = item(root, "sliding_window"), *used = item(root, "use_sliding_window");
  if (cJSON_IsNumber(window) && !cJSON_IsFalse(used) && window->valuedouble < (double)length)
    number(&k, root, "sliding_window", (double)length);
  cJSON_Delete(root);
  return k.e;
}
