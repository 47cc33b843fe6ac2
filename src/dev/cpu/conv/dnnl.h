/* oneDNN, version 2 or 3, by its C interface: what both have under one name.
 *
 * The library is loaded when a convolution first asks for it, by its own handle: a process may hold
 * others (PyTorch and TensorFlow do), and calls of one must not end in another. Without it
 * convolutions go other ways.
 */
#ifndef WEFT_DEV_CPU_CONV_DNNL_H
#define WEFT_DEV_CPU_CONV_DNNL_H

#include <dnnl.h>
#include <stdbool.h>

#if DNNL_VERSION_MAJOR >= 3
#define DNNL_CALLS_OF_VERSION(X)                     \
  X(memory_desc_create_with_strides)                 \
  X(memory_desc_create_with_tag)                     \
  X(memory_desc_clone)                               \
  X(memory_desc_destroy)                             \
  X(convolution_forward_primitive_desc_create)       \
  X(convolution_backward_data_primitive_desc_create) \
  X(convolution_backward_weights_primitive_desc_create)
typedef dnnl_memory_desc_t DnnlDesc; /* one owner: dnnl_desc_free */
typedef const_dnnl_memory_desc_t DnnlDescView;
#else
#define DNNL_CALLS_OF_VERSION(X)                    \
  X(memory_desc_init_by_strides)                    \
  X(memory_desc_init_by_tag)                        \
  X(dilated_convolution_forward_desc_init)          \
  X(dilated_convolution_backward_data_desc_init)    \
  X(dilated_convolution_backward_weights_desc_init) \
  X(primitive_desc_create)
typedef dnnl_memory_desc_t *DnnlDesc;
typedef const dnnl_memory_desc_t *DnnlDescView;
#endif

#define DNNL_CALLS(X)                   \
  DNNL_CALLS_OF_VERSION(X)              \
  X(engine_create)                      \
  X(stream_create)                      \
  X(stream_wait)                        \
  X(stream_destroy)                     \
  X(memory_create)                      \
  X(memory_destroy)                     \
  X(memory_desc_get_size)               \
  X(memory_desc_equal)                  \
  X(primitive_attr_create)              \
  X(primitive_attr_set_scratchpad_mode) \
  X(primitive_attr_destroy)             \
  X(primitive_desc_query)               \
  X(primitive_desc_query_md)            \
  X(primitive_desc_destroy)             \
  X(reorder_primitive_desc_create)      \
  X(primitive_create)                   \
  X(primitive_execute)                  \
  X(primitive_destroy)

typedef struct Dnnl {
  dnnl_engine_t engine;
#define DNNL_CALL(name) __typeof__(dnnl_##name) *name;
  DNNL_CALLS(DNNL_CALL)
#undef DNNL_CALL
} Dnnl;

/* NULL: it is not there. From any thread. */
const Dnnl *dnnl(void);

/* oneDNN would use OpenMP's threads, the pool has divided the work: one, until the caller's own
 * number is put back. */
int dnnl_single_begin(void);
void dnnl_single_end(int was);

/* Descriptions of arrays; *out is untouched on errors. NULL is fine to free and copy. */
dnnl_status_t dnnl_desc_strides(DnnlDesc *out, int n, const dnnl_dim_t *dims, dnnl_data_type_t t,
                                const dnnl_dim_t *strides);
dnnl_status_t dnnl_desc_tag(DnnlDesc *out, int n, const dnnl_dim_t *dims, dnnl_data_type_t t,
                            dnnl_format_tag_t tag);
dnnl_status_t dnnl_desc_copy(DnnlDesc *out, DnnlDescView d);
void dnnl_desc_free(DnnlDesc d);

/* A convolution over descriptions of X, W and Y. */
typedef struct DnnlConv {
  DnnlDescView x, w, y;
  const dnnl_dim_t *strides, *dilates, *low, *high;
} DnnlConv;
dnnl_status_t dnnl_conv_forward(const DnnlConv *c, const_dnnl_primitive_attr_t attr,
                                dnnl_primitive_desc_t *out);
/* Of the gradient of X or of W (weights); `hint` is a forward pass of these shapes. */
dnnl_status_t dnnl_conv_backward(const DnnlConv *c, bool weights, const_dnnl_primitive_attr_t attr,
                                 const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out);

#endif
