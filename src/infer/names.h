/* names: what other programs call the tensors of a network, and how they lay them out. */
#ifndef WEFT_INFER_NAMES_H
#define WEFT_INFER_NAMES_H

#include "train/train.h"

typedef enum NameStyle {
  NAMES_TORCH, /* transformers for gpt2, bert, llama; torchvision and timm for resnet; timm for vit;
                  for others layer.weight, as torch.nn calls it */
  NAMES_KERAS  /* layer/kernel, layer/gamma, layer/moving_mean */
} NameStyle;

typedef enum NameForm {
  FORM_SAME,
  FORM_TURNED, /* dense kernels: (in, out) here, (out, in) there */
  FORM_CONV,   /* kernels: HWIO here, OIHW there */
  FORM_ONES    /* two more dimensions of 1 in front */
} NameForm;

typedef struct OtherName {
  char name[160];
  NameForm form;
  int part, parts; /* of several tensors there that lie side by side here (query, key, value) */
} OtherName;

/* The names of tensor `ours`; returns how many (parts), 1 to 3. */
int names_of(NameStyle style, const Model *m, const char *ours, int rank, OtherName out[3]);
/* Adds the tensors there that make up `t`; data are new. */
typedef VEC(NamedTensor) TensorVec;
void names_export(NameStyle style, const Model *m, const NamedTensor *t, TensorVec *out);
/* The tensor of our shape from those of a file; f16 and bf16 become f32.
 *   errors    ERR_INVALID one is missing or has another shape: names it */
Err *names_import(const Model *m, const StateSpec *s, int n, const NamedTensor *file, float *out);

#endif
