/* The layouts extension. Every value is row-major, so a layout is known by its rank; the objects
 * are constant and belong to nobody. Without this extension callers read layouts out of the
 * optimized program, which costs them more than compiling it. */
#include "pjrt/pjrt_priv.h"

#include <stdio.h>

#define MAX_RANK 64

struct PJRT_Layouts_MemoryLayout {
  char text[4 * MAX_RANK]; /* minor to major: "{2,1,0}" */
  size_t n;
};

static struct PJRT_Layouts_MemoryLayout row_major[MAX_RANK + 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_layouts(void) {
  for (int rank = 0; rank <= MAX_RANK; rank++) {
    Buf b = {0};
    buf_byte(&b, '{');
    for (int k = rank - 1; k >= 0; k--) buf_printf(&b, "%d%s", k, k ? "," : "");
    buf_byte(&b, '}');
    row_major[rank].n = b.n;
    memcpy(row_major[rank].text, b.p, b.n);
    buf_free(&b);
  }
}

static PJRT_Error *layout_of(size_t rank, PJRT_Layouts_MemoryLayout **out) {
  pthread_once(&once, make_layouts);
  if (rank > MAX_RANK)
    return error_new(ERR_UNIMPLEMENTED, "weft: the layout of an array of %zu dimensions", rank);
  *out = &row_major[rank];
  return NULL;
}

PJRT_Layouts_MemoryLayout *layout_of_type(const Type *t) {
  PJRT_Layouts_MemoryLayout *l = NULL;
  PJRT_Error *e = layout_of(t->kind == TY_TENSOR ? (size_t)t->rank : 0, &l);
  error_free(e);
  return l;
}

static PJRT_Error *destroy(PJRT_Layouts_MemoryLayout_Destroy_Args *a) {
  (void)a;
  return NULL;
}

static void nothing_to_free(PJRT_Layouts_SerializedLayout *l) { (void)l; }

static PJRT_Error *serialize(PJRT_Layouts_MemoryLayout_Serialize_Args *a) {
  a->serialized_bytes = a->layout->text;
  a->serialized_bytes_size = a->layout->n;
  a->serialized_layout = (PJRT_Layouts_SerializedLayout *)a->layout;
  a->serialized_layout_deleter = nothing_to_free;
  return NULL;
}

static PJRT_Error *client_default(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *a) {
  return layout_of(a->num_dims, &a->layout);
}

static PJRT_Error *topology_default(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *a) {
  return layout_of(a->num_dims, &a->layout);
}

static PJRT_Error *of_buffer(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *a) {
  return layout_of((size_t)a->buffer->rank, &a->layout);
}

static PJRT_Error *known(PJRT_Layouts_MemoryLayout **list, int n) {
  for (int i = 0; i < n; i++)
    if (!list[i]) return error_new(ERR_UNIMPLEMENTED, "weft: the layout of so many dimensions");
  return NULL;
}

static PJRT_Error *of_outputs(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *a) {
  a->num_outputs = (size_t)a->executable->n_out;
  a->layouts = a->executable->layouts_out;
  return known(a->layouts, a->executable->n_out);
}

static PJRT_Error *of_parameters(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *a) {
  a->num_parameters = (size_t)a->executable->n_in;
  a->layouts = a->executable->layouts_in;
  return known(a->layouts, a->executable->n_in);
}

const PJRT_Layouts_Extension layouts_extension = {
    .base = {sizeof layouts_extension, PJRT_Extension_Type_LAYOUTS,
             (PJRT_Extension_Base *)(uintptr_t)&memory_descriptions_extension},
    .PJRT_Layouts_MemoryLayout_Destroy = destroy,
    .PJRT_Layouts_MemoryLayout_Serialize = serialize,
    .PJRT_Layouts_PJRT_Client_GetDefaultLayout = client_default,
    .PJRT_Layouts_PJRT_Buffer_MemoryLayout = of_buffer,
    .PJRT_Layouts_PJRT_Topology_GetDefaultLayout = topology_default,
    .PJRT_Layouts_PJRT_Executable_GetOutputLayouts = of_outputs,
    .PJRT_Layouts_PJRT_Executable_GetParameterLayouts = of_parameters,
};
