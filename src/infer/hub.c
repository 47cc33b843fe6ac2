/* A folder as transformers and the model hubs write it: config.json, weights in one file or in several that an index
 * lists, the tokenizer's files. */
#include "infer/hub.h"

#include "base/path.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char weights_name[] = "model.safetensors",
                  index_name[] = "model.safetensors.index.json";

bool hub_is_folder(const char *path) {
  struct stat st;
  return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* NULL: the file is not there, or no JSON. */
static cJSON *read_json(const char *folder, const char *name) {
  char *path = xasprintf("%s/%s", folder, name);
  Buf b = {0};
  cJSON *root = NULL;
  if (!access(path, F_OK)) {
    err_free(file_read(path, &b));
    if (b.p) root = cJSON_ParseWithLength(b.p, b.n);
  }
  buf_free(&b);
  free(path);
  return root;
}

cJSON *hub_config(const char *path) {
  if (hub_is_folder(path)) return read_json(path, "config.json");
  const char *slash = strrchr(path, '/');
  char *folder = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
  cJSON *root = read_json(*folder ? folder : "/", "config.json");
  free(folder);
  return root;
}

int hub_layers(const char *folder) {
  static const char *const names[] = {"n_layer", "num_hidden_layers"};
  cJSON *root = hub_config(folder);
  int layers = 0;
  for (int i = 0; i < 2 && !layers; i++) {
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(root, names[i]);
    if (cJSON_IsNumber(v) && v->valueint > 0 && v->valueint < 100000) layers = v->valueint;
  }
  cJSON_Delete(root);
  return layers;
}

/* Adds the tensors of one file. */
static Err *add_file(const char *folder, const char *name, HubWeights *out) {
  char *path = xasprintf("%s/%s", folder, name);
  int n;
  NamedTensor *t;
  Err *e = safetensors_read(path, &n, &t);
  free(path);
  TRY(e);
  out->v = xrealloc(out->v, sizeof *t * (size_t)(out->n + n + 1));
  if (n) memcpy(out->v + out->n, t, sizeof *t * (size_t)n);
  out->n += n;
  free(t);
  return NULL;
}

/* {"weight_map": {"tensor": "file", ...}}: each file once. */
static Err *add_listed(const char *folder, HubWeights *out) {
  cJSON *root = read_json(folder, index_name);
  const cJSON *map = cJSON_GetObjectItemCaseSensitive(root, "weight_map"), *item;
  Map *seen = map_new();
  Err *e = NULL;
  if (!cJSON_IsObject(map))
    e = err_new(ERR_DATA_LOSS, "'%s/%s' has no weight_map", folder, index_name);
  cJSON_ArrayForEach(item, map) {
    bool name = cJSON_IsString(item) && !strchr(item->valuestring, '/');
    if (e || (name && map_get(seen, str_from(item->valuestring)))) continue;
    if (!name)
      e = err_new(ERR_DATA_LOSS, "'%s/%s': tensor '%s' is in no file", folder, index_name,
                  item->string);
    else e = add_file(folder, item->valuestring, out);
    if (name) map_set(seen, str_from(item->valuestring), seen);
  }
  map_free(seen);
  cJSON_Delete(root);
  return e;
}

static bool holds(const char *folder, const char *name) {
  char *path = xasprintf("%s/%s", folder, name);
  bool there = !access(path, F_OK);
  free(path);
  return there;
}

Err *hub_read(const char *path, HubWeights *out) {
  *out = (HubWeights){0};
  Err *e;
  if (!hub_is_folder(path)) e = safetensors_read(path, &out->n, &out->v);
  else if (holds(path, weights_name)) e = add_file(path, weights_name, out);
  else if (holds(path, index_name)) e = add_listed(path, out);
  else
    e = err_hint(
        err_new(ERR_NOT_FOUND, "'%s' has neither %s nor %s", path, weights_name, index_name),
        "the file itself may be given, too");
  if (e && e->code == ERR_DATA_LOSS && str_ends(str_from(path), ".bin"))
    err_hint(e,
             "a pickle of PyTorch: safetensors.torch.save_file(torch.load(...), FILE) converts it");
  if (e) hub_free(out);
  return e;
}

void hub_free(HubWeights *w) {
  safetensors_free(w->n, w->v);
  *w = (HubWeights){0};
}

bool hub_has_tokenizer(const char *folder) {
  Tokenizer *t;
  Err *e = tokenizer_open(folder, &t);
  bool none =
      e && e->code == ERR_NOT_FOUND; /* what else is wrong with it is said when it is taken */
  if (!e) tokenizer_close(t);
  err_free(e);
  return !none;
}
