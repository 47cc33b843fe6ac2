/* Buffers: a device's array under a caller's handle. Data is immutable once it is there, so copies
 * between memories share it. The caller's host memory is used in place when it may be and is laid
 * out as tensors are (row-major, 64-byte aligned); then `done_with_host_buffer` fires when the data
 * is freed. */
#include <stdatomic.h>
#include <stdio.h>

#include "pjrt/pjrt_priv.h"

PJRT_Memory *memory_of(PJRT_Memory *m, PJRT_Device *d) {
  return m ? m : d ? d->memory_list[MEM_DEVICE] : NULL;
}

bool dims_are_sane(size_t n, const int64_t *dims) {
  if (n > 1024 || (n && !dims)) return false;
  int64_t count = 1;
  for (size_t i = 0; i < n; i++)
    if (dims[i] < 0 || mul_overflows(count, MAX(dims[i], 1), &count)) return false;
  return true;
}

static PJRT_Error *bad_shape(DType t, size_t n, const int64_t *dims) {
  if (dtype_bytes(t) == 0 && t != DT_TOKEN)
    return error_new(ERR_UNIMPLEMENTED, "weft: buffers of element type %d", (int)t);
  if (!dims_are_sane(n, dims)) return error_new(ERR_INVALID, "a buffer with impossible dimensions");
  return NULL;
}

static DType dtype_of(int type) { return type > 0 && type < DT_TF32 ? (DType)type : DT_INVALID; }

/* Locks are shared by address: one each would make a buffer half as large again, past the sizes that
 * the C library hands out fast. None is held while another is taken. */
#define LOCKS 64
static pthread_mutex_t locks[LOCKS] = {[0 ... LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER};

static pthread_mutex_t *lock_of(const PJRT_Buffer *b) {
  return &locks[(uintptr_t)b / 64 * 0x9e3779b97f4a7c15u >> 58];
}

static PJRT_Buffer *buffer_object(PJRT_Memory *m, DType dtype, int rank, const int64_t *dims,
                                  PJRT_Event *take_ready) {
  PJRT_Buffer *b = xcalloc(1, sizeof *b + sizeof(int64_t) * (size_t)rank);
  b->refs = 1;
  b->client = client_retain(m->client);
  b->memory = m;
  b->dtype = dtype;
  b->rank = rank;
  b->dims = (int64_t *)(b + 1);
  for (int i = 0; i < rank; i++) b->dims[i] = dims[i];
  b->layout = layout_row_major(rank);
  b->ready = take_ready;
  return b;
}

PJRT_Buffer *buffer_promise(PJRT_Memory *m, DType dtype, int rank, const int64_t *dims) {
  return buffer_object(m, dtype, rank, dims, event_new());
}

PJRT_Buffer *buffer_promise_until(PJRT_Event *ready, PJRT_Memory *m, DType dtype, int rank,
                                  const int64_t *dims) {
  return buffer_object(m, dtype, rank, dims, event_retain(ready));
}

void buffer_fill(PJRT_Buffer *b, DevBuffer *take) {
  pthread_mutex_lock(lock_of(b));
  b->data = take;
  bool unwanted = b->deleted && !b->holds;
  pthread_mutex_unlock(lock_of(b));
  if (take && unwanted) dev_buffer_delete(take);
}

void buffer_fulfill(PJRT_Buffer *b, DevBuffer *take, PJRT_Error *take_error) {
  buffer_fill(b, take);
  event_set(b->ready, take_error);
}

PJRT_Buffer *buffer_wrap(PJRT_Memory *m, DevBuffer *take) {
  Tensor *t = take->t;
  PJRT_Buffer *b = buffer_object(m, t->dtype, t->rank, t->dims, event_ready());
  b->data = take;
  return b;
}

Err *buffer_make(PJRT_Memory *m, Tensor *t, PJRT_Buffer **out) {
  DevBuffer *d;
  TRY(dev_buffer_new(m->client->dev, m->device->desc.id, t, m->kind != MEM_DEVICE, &d));
  *out = buffer_wrap(m, d);
  return NULL;
}

Err *buffer_tensor(PJRT_Buffer *b, Tensor **out) {
  TRY(error_to_err(event_wait(b->ready)));
  Tensor *t = b->deleted || !b->data ? NULL : __atomic_load_n(&b->data->t, __ATOMIC_ACQUIRE);
  if (!t) return err_new(ERR_INVALID, "the buffer has been deleted or donated");
  *out = tensor_retain(t);
  return NULL;
}

Err *buffer_memory(PJRT_Buffer *b, Tensor **out) {
  if (!b->layout->is_row_major)
    return err_hint(err_new(ERR_UNIMPLEMENTED, "weft: the memory of an array whose layout is %.*s",
                            STR_ARG(b->layout->text)),
                    "read it by a copy, or change its layout first: jax.device_put(x, x.sharding)");
  return buffer_tensor(b, out);
}

static void drop_if_unwanted(PJRT_Buffer *b) { /* with the lock; gives it back */
  DevBuffer *drop = b->deleted && !b->holds ? b->data : NULL;
  pthread_mutex_unlock(lock_of(b));
  if (drop) dev_buffer_delete(drop);
}

void buffer_delete(PJRT_Buffer *b) {
  pthread_mutex_lock(lock_of(b));
  b->deleted = true;
  drop_if_unwanted(b);
}

Err *buffer_hold(PJRT_Buffer *b) {
  pthread_mutex_lock(lock_of(b));
  bool gone = b->deleted;
  if (!gone) {
    b->holds++;
    __atomic_fetch_add(&b->refs, 1, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(lock_of(b));
  return gone ? err_new(ERR_INVALID, "the buffer has been deleted or donated") : NULL;
}

void buffer_unhold(PJRT_Buffer *b) {
  pthread_mutex_lock(lock_of(b));
  b->holds--;
  drop_if_unwanted(b);
  buffer_release(b);
}

void buffer_release(PJRT_Buffer *b) {
  if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  dev_buffer_release(b->data);
  tensor_release(b->external);
  event_release(b->ready);
  client_release(b->client);
  free(b);
}

/* ---- host to device ---- */

static void host_memory_done(void *arg, void *data) {
  (void)data;
  event_set(arg, NULL);
  event_release(arg);
}

/* Callers may leave rubbish above the value of elements narrower than a byte. */
static void clean_narrow(Tensor *t) {
  int bits = dtype_bits(t->dtype);
  if (bits >= 8 || t->dtype == DT_I1) return;
  uint8_t *p = t->data, mask = (uint8_t)((1u << bits) - 1), sign = (uint8_t)(1u << (bits - 1));
  bool is_signed = dtype_is_signed(t->dtype);
  for (int64_t i = 0; i < t->count; i++) {
    uint8_t v = p[i] & mask;
    p[i] = is_signed && (v & sign) ? (uint8_t)(v | ~mask) : v;
  }
}

static bool is_dense(int rank, const int64_t *dims, const int64_t *strides, size_t elem) {
  int64_t want = (int64_t)elem;
  for (int i = rank - 1; i >= 0; i--) {
    if (dims[i] == 0) return true;
    if (dims[i] != 1 && strides[i] != want) return false;
    want *= dims[i];
  }
  return true;
}

/* Arrays of zeros (an optimizer's slots before the first step) are worth knowing when large. */
static bool is_zeros(const char *p, size_t n) {
  static const char none[64];
  return n >= 1 << 20 && !memcmp(p, none, sizeof none) && !memcmp(p, p + 64, n - 64);
}

/* A copy of the caller's array. */
static Err *device_copy(const PJRT_Memory *m, DType t, int rank, const int64_t *dims,
                        const void *data, const int64_t *strides, Tensor **out) {
  const DeviceOps *ops = m->client->dev->ops;
  size_t elem = (size_t)dtype_bytes(t), n = elem;
  for (int i = 0; i < rank; i++) n *= (size_t)dims[i];
  bool zeros = ops->tensor && !strides && is_zeros(data, n);
  TRY(ops->tensor ? ops->tensor(t, rank, dims, zeros, out) : tensor_new(t, rank, dims, out));
  if (!zeros) copy_strided((*out)->data, NULL, data, strides, rank, dims, elem);
  clean_narrow(*out);
  return NULL;
}

ENTRY(Client_BufferFromHostBuffer) {
  PJRT_Memory *m = memory_of(a->memory, a->device);
  if (!m) m = a->client->memory_list[0];
  DType t = dtype_of(a->type);
  PTRY(bad_shape(t, a->num_dims, a->dims));
  int rank = (int)a->num_dims;
  Layout *layout;
  PTRY(error_from(layout_from_caller(a->device_layout, rank, &layout)));
  size_t elem = (size_t)dtype_bytes(t);
  const int64_t *strides = a->num_byte_strides ? a->byte_strides : NULL;
  if (strides && a->num_byte_strides != a->num_dims)
    return error_new(ERR_INVALID, "%zu strides for %d dimensions", a->num_byte_strides, rank);
  bool dense = !strides || is_dense(rank, a->dims, strides, elem);
  ProfilerSpan span = profiler_begin();
  bool may_alias = a->host_buffer_semantics >= PJRT_HostBufferSemantics_IMMUTABLE_ZERO_COPY;
  bool foreign =
      may_alias && dense && (uintptr_t)a->data % 64 == 0 && dtype_bits(t) >= 8 && a->data;
  PJRT_Event *done = foreign ? event_new() : event_ready();
  Tensor *tensor = NULL;
  Err *e = NULL;
  if (foreign) {
    tensor = tensor_wrap(t, rank, a->dims, (void *)(uintptr_t)a->data, host_memory_done,
                         event_retain(done));
  } else {
    e = device_copy(m, t, rank, a->dims, a->data, dense ? NULL : strides, &tensor);
  }
  if (!e) e = buffer_make(m, tensor, &a->buffer);
  if (e) {
    event_release(done);
    return error_from(e);
  }
  a->buffer->layout = layout;
  profiler_to_device(span, a->buffer);
  a->done_with_host_buffer = done;
  return NULL;
}

ENTRY(Client_CreateUninitializedBuffer) {
  PJRT_Memory *m = memory_of(a->memory, a->device);
  if (!m) m = a->client->memory_list[0];
  DType t = dtype_of(a->shape_element_type);
  PTRY(bad_shape(t, a->shape_num_dims, a->shape_dims));
  Layout *layout;
  PTRY(error_from(layout_from_caller(a->shape_layout, (int)a->shape_num_dims, &layout)));
  Tensor *tensor;
  Err *e = tensor_new(t, (int)a->shape_num_dims, a->shape_dims, &tensor);
  if (!e) memset(tensor->data, 0, tensor_bytes(tensor)); /* any value is allowed: a defined one */
  if (!e) e = buffer_make(m, tensor, &a->buffer);
  if (!e) a->buffer->layout = layout;
  return error_from(e);
}

typedef struct ViewOwner {
  void (*fn)(void *, void *);
  void *arg;
} ViewOwner;

static void view_done(void *arg, void *data) {
  ViewOwner *o = arg;
  if (o->fn) o->fn(data, o->arg);
  free(o);
}

static void base_release(void *arg, void *data) {
  (void)data;
  tensor_release(arg);
}

ENTRY(Client_CreateViewOfDeviceBuffer) {
  PJRT_Memory *given = HAS(Client_CreateViewOfDeviceBuffer, memory) ? a->memory : NULL;
  PJRT_Memory *m = memory_of(given, a->device);
  if (!m) m = a->client->memory_list[0];
  DType t = dtype_of(a->element_type);
  PTRY(bad_shape(t, a->num_dims, a->dims));
  int rank = (int)a->num_dims;
  size_t elem = (size_t)dtype_bytes(t);
  int64_t *strides = a->layout ? xcalloc((size_t)rank + 1, sizeof *strides) : NULL;
  Err *e = strides ? layout_strides(a->layout, rank, a->dims, elem, strides) : NULL;
  ViewOwner *o = xcalloc(1, sizeof *o);
  *o = (ViewOwner){a->on_delete_callback, a->on_delete_callback_arg};
  Tensor *tensor = NULL;
  if (!e && (!strides || is_dense(rank, a->dims, strides, elem))) {
    tensor = tensor_wrap(t, rank, a->dims, a->device_buffer_ptr, view_done, o);
  } else if (!e) { /* programs read rows: a copy, and the memory is its owner's again */
    e = device_copy(m, t, rank, a->dims, a->device_buffer_ptr, strides, &tensor);
    if (!e) view_done(o, a->device_buffer_ptr);
  }
  free(strides);
  if (!tensor) free(o);
  else e = buffer_make(m, tensor, &a->buffer);
  return error_from(e);
}

ENTRY(Client_CreateErrorBuffer) {
  DType t = dtype_of(a->shape_element_type);
  PTRY(bad_shape(t, a->shape_num_dims, a->shape_dims));
  Layout *layout;
  PTRY(error_from(layout_from_caller(a->shape_layout, (int)a->shape_num_dims, &layout)));
  PJRT_Memory *m = a->memory ? a->memory : a->client->memory_list[0];
  a->buffer = buffer_promise(m, t, (int)a->shape_num_dims, a->shape_dims);
  a->buffer->layout = layout;
  buffer_fulfill(a->buffer, NULL,
                 error_new((ErrCode)a->error_code, "%.*s", (int)a->error_message_size,
                           a->error_message ? a->error_message : ""));
  return NULL;
}

bool tensor_is_foreign(const Tensor *t) {
  return t->release == host_memory_done || t->release == view_done || t->release == base_release;
}

/* ---- getters ---- */

ENTRY(Buffer_Destroy) {
  buffer_release(a->buffer);
  return NULL;
}

ENTRY(Buffer_ElementType) {
  a->type = (PJRT_Buffer_Type)a->buffer->dtype;
  return NULL;
}

ENTRY(Buffer_Dimensions) {
  a->dims = a->buffer->dims;
  a->num_dims = (size_t)a->buffer->rank;
  return NULL;
}

ENTRY(Buffer_UnpaddedDimensions) {
  a->unpadded_dims = a->buffer->dims;
  a->num_dims = (size_t)a->buffer->rank;
  return NULL;
}

ENTRY(Buffer_DynamicDimensionIndices) {
  a->dynamic_dim_indices = NULL;
  a->num_dynamic_dims = 0;
  return NULL;
}

ENTRY(Buffer_GetMemoryLayout) {
  PJRT_Buffer_MemoryLayout l = {.struct_size = PJRT_END(PJRT_Buffer_MemoryLayout, type)};
  l.type = PJRT_Buffer_MemoryLayout_Type_TILED;
  l.tiled = (PJRT_Buffer_MemoryLayout_Tiled){
      .struct_size = PJRT_END(PJRT_Buffer_MemoryLayout_Tiled, num_tiles),
      .minor_to_major = a->buffer->layout->minor_to_major,
      .minor_to_major_size = (size_t)a->buffer->rank,
  };
  a->layout = l;
  return NULL;
}

ENTRY(Buffer_OnDeviceSizeInBytes) {
  int64_t n = dtype_bytes(a->buffer->dtype);
  for (int i = 0; i < a->buffer->rank; i++) n *= a->buffer->dims[i];
  a->on_device_size_in_bytes = (size_t)n;
  return NULL;
}

ENTRY(Buffer_Device) {
  a->device = a->buffer->memory->device;
  return NULL;
}

ENTRY(Buffer_Memory) {
  a->memory = a->buffer->memory;
  return NULL;
}

ENTRY(Buffer_Delete) {
  buffer_delete(a->buffer);
  return NULL;
}

ENTRY(Buffer_IsDeleted) {
  PJRT_Buffer *b = a->buffer;
  a->is_deleted = b->deleted || (event_is_ready(b->ready) && b->data &&
                                 !__atomic_load_n(&b->data->t, __ATOMIC_ACQUIRE));
  return NULL;
}

/* True: callers read the memory in place. Elements narrower than a byte and other layouts than
 * row-major go through ToHostBuffer. */
ENTRY(Buffer_IsOnCpu) {
  PJRT_Buffer *b = a->buffer;
  a->is_on_cpu = (dtype_bits(b->dtype) >= 8 || b->dtype == DT_I1) && b->layout->is_row_major;
  if (!event_is_ready(b->ready)) return NULL; /* only what computes is slow */
  Tensor *t = b->data ? __atomic_load_n(&b->data->t, __ATOMIC_ACQUIRE) : NULL;
  if (t && !t->data) a->is_on_cpu = false;
  return NULL;
}

ENTRY(Buffer_ReadyEvent) {
  profiler_waits(profiler_begin(), a->buffer, false);
  __atomic_store_n(&a->buffer->memory->device->asked, true, __ATOMIC_RELAXED);
  a->event = event_retain(a->buffer->ready);
  return NULL;
}

/* With WEFT_PHANTOM no numbers are computed; programs that print their loss go on, told once. */
static void phantom_zeros(void *dst, size_t bytes) {
  static atomic_flag told = ATOMIC_FLAG_INIT;
  if (bytes && !atomic_flag_test_and_set(&told))
    fprintf(stderr, "weft: WEFT_PHANTOM is set: nothing is computed, results read as zeros\n");
  memset(dst, 0, bytes);
}

static PJRT_Error *data_pointer(PJRT_Buffer *b, void **out) {
  Tensor *t;
  PTRY(error_from(buffer_memory(b, &t)));
  *out = t->data;
  tensor_release(t);
  return NULL;
}

ENTRY(Buffer_UnsafePointer) {
  void *p;
  PTRY(data_pointer(a->buffer, &p));
  a->buffer_pointer = (uintptr_t)p;
  return NULL;
}

ENTRY(Buffer_OpaqueDeviceMemoryDataPointer) {
  return data_pointer(a->buffer, &a->device_memory_ptr);
}

ENTRY(Buffer_IncreaseExternalReferenceCount) {
  PJRT_Buffer *b = a->buffer;
  Tensor *t;
  PTRY(error_from(buffer_memory(b, &t)));
  pthread_mutex_lock(lock_of(b));
  if (b->external_refs++ == 0) {
    b->external = t;
    t = NULL;
  }
  pthread_mutex_unlock(lock_of(b));
  tensor_release(t);
  return NULL;
}

ENTRY(Buffer_DecreaseExternalReferenceCount) {
  PJRT_Buffer *b = a->buffer;
  Tensor *drop = NULL;
  pthread_mutex_lock(lock_of(b));
  bool ok = b->external_refs > 0;
  if (ok && --b->external_refs == 0) {
    drop = b->external;
    b->external = NULL;
  }
  pthread_mutex_unlock(lock_of(b));
  tensor_release(drop);
  return ok ? NULL : error_new(ERR_INVALID, "the buffer has no external references");
}

/* ---- device to host, device to device ---- */

ENTRY(Buffer_ToHostBuffer) {
  PJRT_Buffer *b = a->src;
  size_t elem = (size_t)dtype_bytes(b->dtype);
  int64_t bytes = (int64_t)elem;
  for (int i = 0; i < b->rank; i++) bytes *= b->dims[i];
  if (!a->dst) {
    a->dst_size = (size_t)bytes;
    return NULL;
  }
  ProfilerSpan span = profiler_begin();
  int64_t *strides = NULL;
  Err *e = NULL;
  if (a->host_layout || !b->layout->is_row_major) {
    strides = xcalloc((size_t)b->rank + 1, sizeof *strides);
    if (a->host_layout) e = layout_strides(a->host_layout, b->rank, b->dims, elem, strides);
    else layout_dense_strides(b->layout, b->dims, elem, strides);
  }
  if (!e && a->dst_size < (size_t)bytes)
    e = err_new(ERR_INVALID, "the host has room for %zu bytes, the buffer has %lld", a->dst_size,
                (long long)bytes);
  Tensor *t = NULL;
  if (!e) e = buffer_tensor(b, &t);
  if (!e && t->data) copy_strided(a->dst, strides, t->data, NULL, b->rank, b->dims, elem);
  else if (!e && t->phantom) phantom_zeros(a->dst, (size_t)bytes);
  else if (!e && bytes)
    e = err_hint(err_new(ERR_UNIMPLEMENTED, "weft: the device computes no values"),
                 "this device only estimates; use device 'cpu' to read results");
  tensor_release(t);
  free(strides);
  if (e) return error_from(e);
  profiler_waits(span, b, true);
  a->event = event_ready();
  return NULL;
}

static PJRT_Error *copy_to(PJRT_Buffer *b, PJRT_Memory *m, PJRT_Buffer **out) {
  const PJRT_Error *failed = event_wait(b->ready);
  if (failed) { /* the copy carries the error on */
    *out = buffer_promise(m, b->dtype, b->rank, b->dims);
    (*out)->layout = b->layout;
    buffer_fulfill(*out, NULL, error_copy(failed));
    return NULL;
  }
  Tensor *t;
  PTRY(error_from(buffer_tensor(b, &t)));
  PTRY(error_from(buffer_make(m, t, out)));
  (*out)->layout = b->layout;
  return NULL;
}

ENTRY(Buffer_CopyToMemory) { return copy_to(a->buffer, a->dst_memory, &a->dst_buffer); }

ENTRY(Buffer_CopyToDevice) {
  return copy_to(a->buffer, a->dst_device->memory_list[MEM_DEVICE], &a->dst_buffer);
}

ENTRY(Buffer_Bitcast) {
  PJRT_Buffer *b = a->buffer;
  DType t = dtype_of(a->element_type);
  PTRY(bad_shape(t, a->num_dims, a->dims));
  Tensor *base;
  PTRY(error_from(buffer_memory(b, &base)));
  Tensor *view = tensor_wrap(t, (int)a->num_dims, a->dims, base->data, base_release, base);
  if (tensor_bytes(view) != tensor_bytes(base)) {
    PJRT_Error *e = error_new(ERR_INVALID, "a bitcast from %zu to %zu bytes", tensor_bytes(base),
                              tensor_bytes(view));
    tensor_release(view);
    return e;
  }
  PTRY(error_from(buffer_make(b->memory, view, &a->out_buffer)));
  return NULL;
}
