/* The part of include/weft.h that uses a trained network, on top of infer. */
#include "api/api_priv.h"

#include "infer/infer.h"

#include <stdio.h>
#include <stdlib.h>

#define NETWORK(n) ((Infer *)(void *)(n))

API WeftError *weft_network_open(WeftClient *c, const char *run, WeftNetwork **out) {
  InferOpts o = {.run = run, .client = CLIENT(c)};
  return api_wrap(infer_open(&o, (Infer **)(void *)out));
}
API void weft_network_close(WeftNetwork *n) { infer_close(NETWORK(n)); }

API void weft_network_info(const WeftNetwork *n, WeftNetworkInfo *out) {
  const CheckpointInfo *c = infer_info(NETWORK(n));
  const Field *f = &c->data->fields[0];
  *out = (WeftNetworkInfo){.model = c->model,
                           .steps = c->step,
                           .weights = infer_weights(NETWORK(n)),
                           .input_type = (WeftType)f->type,
                           .input_rank = f->rank,
                           .outputs = infer_outputs(NETWORK(n)),
                           .classes = c->data->classes};
  memcpy(out->input_dims, f->dims, sizeof f->dims);
  for (int i = 0; i < 3; i++) {
    out->mean[i] = (double)c->data->mean[i];
    out->deviation[i] = (double)c->data->std[i];
  }
}

API void weft_network_label(const WeftNetwork *n, int64_t k, char *out, size_t size) {
  const char *p = infer_info(NETWORK(n))->data->labels;
  for (int64_t i = 0; p && i < k; i++) p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
  snprintf(out, size, "%.*s", p ? (int)strcspn(p, "\n") : 0, p ? p : "");
}

API WeftError *weft_network_forward(WeftNetwork *n, int64_t examples, const void *inputs,
                                    float *logits) {
  if (examples < 1 || !inputs)
    return api_wrap(err_new(ERR_INVALID, "%lld examples%s", (long long)examples,
                            inputs ? "" : " that are not there"));
  return api_wrap(infer_forward(NETWORK(n), examples, inputs, logits));
}

API WeftError *weft_network_predict(WeftNetwork *n, const char *path, int64_t *out_n, float **out) {
  void *examples = NULL;
  int64_t k = infer_outputs(NETWORK(n)), count;
  Err *e = infer_read(NETWORK(n), path, &count, &examples);
  if (e) return api_wrap(e);
  float *p = xmalloc(sizeof *p * (size_t)(count * k) + 1);
  e = infer_forward(NETWORK(n), count, examples, p);
  free(examples);
  if (e) return free(p), api_wrap(e);
  bool shares = infer_classes(NETWORK(n)) > 0;
  for (int64_t i = 0; i < count && shares; i++) infer_softmax(p + i * k, k);
  *out_n = count;
  *out = p;
  return NULL;
}
API void weft_numbers_free(float *numbers) { free(numbers); }

static Err *sensible(const char *prompt, int64_t tokens, const Sampling *s) {
  if (!prompt) return err_new(ERR_INVALID, "no prompt");
  if (tokens < 1) return err_new(ERR_INVALID, "%lld tokens to make", (long long)tokens);
  if (!(s->temperature >= 0) || s->top_k < 0 || !(s->top_p >= 0 && s->top_p <= 1))
    return err_new(ERR_INVALID, "temperature %g, top_k %lld, top_p %g", s->temperature,
                   (long long)s->top_k, s->top_p);
  return NULL;
}

API WeftError *weft_network_generate(WeftNetwork *n, const char *prompt, int64_t tokens,
                                     double temperature, int64_t top_k, double top_p, uint64_t seed,
                                     char **out) {
  Tokens *t = NULL;
  IdVec ids = {0};
  Generated made = {0};
  GenerateOpts o = {.tokens = tokens, .sampling = {temperature, top_k, top_p, seed}};
  Err *e = sensible(prompt, tokens, &o.sampling);
  if (!e && infer_info(NETWORK(n))->data->fields[0].type != DT_I32)
    e = err_new(ERR_UNIMPLEMENTED, "this network makes no text");
  if (!e) e = tokens_open(infer_info(NETWORK(n)), &t);
  if (!e) e = tokens_encode(t, str_from(prompt), &ids);
  if (!e) e = infer_generate(NETWORK(n), &ids, &o, &made);
  if (!e) {
    Buf text = {0};
    for (int i = 0; i < made.ids.n; i++) tokens_decode(t, made.ids.v[i], &text);
    if (!text.p) buf_add(&text, "", 0);
    *out = text.p;
  }
  vec_free(&made.ids);
  vec_free(&ids);
  tokens_close(t);
  return api_wrap(e);
}

API WeftError *weft_network_export(const WeftNetwork *n, const char *folder, int64_t batch) {
  if (batch < 1 || !folder)
    return api_wrap(err_new(ERR_INVALID, "a program for %lld examples, in %s", (long long)batch,
                            folder ? folder : "no folder"));
  return api_wrap(infer_export(NETWORK(n), &(ExportOpts){.to = folder, .batch = batch}));
}
