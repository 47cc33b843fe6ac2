/* Private to infer: folders as transformers and the model hubs write them. */
#ifndef WEFT_INFER_HUB_H
#define WEFT_INFER_HUB_H

#include "train/train.h"

typedef struct HubWeights {
  int n;
  NamedTensor *v;
} HubWeights;
/* Of a safetensors file, or of a folder with model.safetensors or model.safetensors.index.json and the files that it
 * lists. Free with hub_free.
 *   errors    as safetensors_read */
Err *hub_read(const char *path, HubWeights *out);
void hub_free(HubWeights *w);

bool hub_is_folder(const char *path);
/* config.json of the folder, or of that in which the file lies; NULL: there is none. cJSON_Delete frees it. */
struct cJSON *hub_config(const char *path);
int hub_layers(const char *folder); /* by its config.json; 0: it does not say */
/* Does config.json, where there is one, describe the network that weft builds? `length`: tokens of an example.
 *   errors    ERR_UNIMPLEMENTED names what it says otherwise */
Err *hub_check(const char *path, const char *model, const NetShape *s, int64_t length);
bool hub_has_tokenizer(const char *folder);

#endif
