/* Finding oneDNN, and the calls in which its versions 2 and 3 differ. */
#include "dev/cpu/conv/dnnl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "dev/cpu/kernel/kernel.h"

static Dnnl table;

static void (*omp_set)(int);
static int (*omp_max)(void);

/* Names of C++ that it shares with other libraries are looked for in itself first. (Sanitizers
 * refuse that.) */
#if defined(RTLD_DEEPBIND) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define OWN_FIRST RTLD_DEEPBIND
#else
#define OWN_FIRST 0
#endif

static void *load(void) {
  bool ours = !getenv("OMP_WAIT_POLICY"); /* OpenMP reads it when it is loaded */
  if (ours) setenv("OMP_WAIT_POLICY", "passive", 0);
  void *library = dlopen(WEFT_DNNL_SONAME, RTLD_NOW | RTLD_LOCAL | OWN_FIRST);
  if (ours) unsetenv("OMP_WAIT_POLICY");
#ifdef WEFT_DNNL_SERIAL /* built so that it starts no threads */
  void *gomp = NULL;
#else
  void *gomp = library ? dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD) : NULL;
#endif
  if (gomp) {
    *(void **)&omp_set = dlsym(gomp, "omp_set_num_threads");
    *(void **)&omp_max = dlsym(gomp, "omp_get_max_threads");
  }
  return library;
}

static bool find_calls(void) {
  void *library = load();
  if (!library) {
    fprintf(stderr, "weft: %s; some convolutions are slower without it\n", dlerror());
    return false;
  }
  bool all = true;
#define DNNL_CALL(name) all &= (*(void **)&table.name = dlsym(library, "dnnl_" #name)) != NULL;
  DNNL_CALLS(DNNL_CALL)
#undef DNNL_CALL
  return all;
}

int dnnl_single_begin(void) {
  int was = omp_max ? omp_max() : 1;
  if (omp_set && was != 1) omp_set(1);
  return was;
}

void dnnl_single_end(int was) {
  if (omp_set && was != 1) omp_set(was);
}

static void start(void) {
  if (!find_calls() || table.engine_create(&table.engine, dnnl_cpu, 0)) table.engine = NULL;
}

const Dnnl *dnnl(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start);
  return table.engine ? &table : NULL;
}

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t dnnl_desc_strides(DnnlDesc *out, int n, const dnnl_dim_t *dims, dnnl_data_type_t t,
                                const dnnl_dim_t *strides) {
  return table.memory_desc_create_with_strides(out, n, dims, t, strides);
}

dnnl_status_t dnnl_desc_tag(DnnlDesc *out, int n, const dnnl_dim_t *dims, dnnl_data_type_t t,
                            dnnl_format_tag_t tag) {
  return table.memory_desc_create_with_tag(out, n, dims, t, tag);
}

dnnl_status_t dnnl_desc_copy(DnnlDesc *out, DnnlDescView d) {
  return table.memory_desc_clone(out, d);
}

void dnnl_desc_free(DnnlDesc d) {
  if (d) table.memory_desc_destroy(d);
}

dnnl_status_t dnnl_conv_forward(const DnnlConv *c, const_dnnl_primitive_attr_t attr,
                                dnnl_primitive_desc_t *out) {
  return table.convolution_forward_primitive_desc_create(
      out, table.engine, dnnl_forward_training, dnnl_convolution_direct, c->x, c->w, NULL, c->y,
      c->strides, c->dilates, c->low, c->high, attr);
}

dnnl_status_t dnnl_conv_backward(const DnnlConv *c, bool weights, const_dnnl_primitive_attr_t attr,
                                 const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out) {
  if (weights)
    return table.convolution_backward_weights_primitive_desc_create(
        out, table.engine, dnnl_convolution_direct, c->x, c->w, NULL, c->y, c->strides, c->dilates,
        c->low, c->high, hint, attr);
  return table.convolution_backward_data_primitive_desc_create(
      out, table.engine, dnnl_convolution_direct, c->x, c->w, c->y, c->strides, c->dilates, c->low,
      c->high, hint, attr);
}

#else /* descriptions are structs of the caller's */

static dnnl_status_t kept(DnnlDesc *out, dnnl_status_t s, const dnnl_memory_desc_t *d) {
  if (s) return s;
  *out = xmalloc(sizeof *d);
  **out = *d;
  return s;
}

dnnl_status_t dnnl_desc_strides(DnnlDesc *out, int n, const dnnl_dim_t *dims, dnnl_data_type_t t,
                                const dnnl_dim_t *strides) {
  dnnl_memory_desc_t d;
  return kept(out, table.memory_desc_init_by_strides(&d, n, dims, t, strides), &d);
}

dnnl_status_t dnnl_desc_tag(DnnlDesc *out, int n, const dnnl_dim_t *dims, dnnl_data_type_t t,
                            dnnl_format_tag_t tag) {
  dnnl_memory_desc_t d;
  return kept(out, table.memory_desc_init_by_tag(&d, n, dims, t, tag), &d);
}

dnnl_status_t dnnl_desc_copy(DnnlDesc *out, DnnlDescView d) { return kept(out, dnnl_success, d); }

void dnnl_desc_free(DnnlDesc d) { free(d); }

dnnl_status_t dnnl_conv_forward(const DnnlConv *c, const_dnnl_primitive_attr_t attr,
                                dnnl_primitive_desc_t *out) {
  dnnl_convolution_desc_t d;
  dnnl_status_t s = table.dilated_convolution_forward_desc_init(
      &d, dnnl_forward_training, dnnl_convolution_direct, c->x, c->w, NULL, c->y, c->strides,
      c->dilates, c->low, c->high);
  return s ? s : table.primitive_desc_create(out, &d, attr, table.engine, NULL);
}

dnnl_status_t dnnl_conv_backward(const DnnlConv *c, bool weights, const_dnnl_primitive_attr_t attr,
                                 const_dnnl_primitive_desc_t hint, dnnl_primitive_desc_t *out) {
  dnnl_convolution_desc_t d;
  dnnl_status_t s =
      weights
          ? table.dilated_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, c->x,
                                                                 c->w, NULL, c->y, c->strides,
                                                                 c->dilates, c->low, c->high)
          : table.dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, c->x,
                                                              c->w, c->y, c->strides, c->dilates,
                                                              c->low, c->high);
  return s ? s : table.primitive_desc_create(out, &d, attr, table.engine, hint);
}

#endif
