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
int hub_layers(const char *folder); /* by its config.json; 0: it does not say */
bool hub_has_tokenizer(const char *folder);

#endif
