/* Buffers whose data comes later: transfer managers, alias buffers, donation after a dependency;
 * raw reads; and small objects that callers make and destroy (execute contexts, tracking events).
 */
#include "pjrt/pjrt_priv.h"

static DType dtype_of(int type) {
  return type > 0 && type < DT_TF32 && dtype_bytes((DType)type) ? (DType)type : DT_INVALID;
}

static PJRT_Error *shape_check(DType t, size_t n, const int64_t *dims) {
  if (t == DT_INVALID) return error_new(ERR_UNIMPLEMENTED, "weft: buffers of this element type");
  if (!dims_are_sane(n, dims)) return error_new(ERR_INVALID, "a buffer with impossible dimensions");
  return NULL;
}

/* ---- async transfers to the device ---- */

typedef struct Slot {
  PJRT_Buffer *buffer; /* our reference */
  Tensor *tensor;      /* being filled */
  bool done;
} Slot;
struct PJRT_AsyncHostToDeviceTransferManager {
  PJRT_Memory *memory;
  int n;
  Slot *slots;
};

static void manager_free(PJRT_AsyncHostToDeviceTransferManager *m) {
  for (int i = 0; i < m->n; i++) {
    Slot *s = &m->slots[i];
    if (s->buffer && !s->done)
      buffer_fulfill(s->buffer, NULL, error_new(ERR_CANCELLED, "the transfer was given up"));
    buffer_release(s->buffer);
    tensor_release(s->tensor);
  }
  free(m->slots);
  free(m);
}

ENTRY(Client_CreateBuffersForAsyncHostToDevice) {
  PJRT_AsyncHostToDeviceTransferManager *m = xcalloc(1, sizeof *m);
  m->memory = a->memory ? a->memory : a->client->memory_list[0];
  m->n = (int)a->num_shape_specs;
  m->slots = xcalloc((size_t)m->n + 1, sizeof *m->slots);
  PJRT_Error *error = NULL;
  for (int i = 0; i < m->n && !error; i++) {
    const PJRT_ShapeSpec *spec = &a->shape_specs[i];
    DType t = dtype_of(spec->element_type);
    error = shape_check(t, spec->num_dims, spec->dims);
    Layout *layout = NULL;
    if (!error && (size_t)i < a->num_device_layouts)
      error = error_from(layout_from_caller(a->device_layouts[i], (int)spec->num_dims, &layout));
    if (!error && layout && !layout->is_row_major) /* bytes come as they lie on the device */
      error = error_new(ERR_UNIMPLEMENTED, "weft: transfers in pieces to an array of layout %.*s",
                        STR_ARG(layout->text));
    if (!error)
      error = error_from(tensor_new(t, (int)spec->num_dims, spec->dims, &m->slots[i].tensor));
    if (!error) m->slots[i].buffer = buffer_promise(m->memory, t, (int)spec->num_dims, spec->dims);
  }
  if (error) {
    manager_free(m);
    return error;
  }
  a->transfer_manager = m;
  return NULL;
}

ENTRY(AsyncHostToDeviceTransferManager_Destroy) {
  manager_free(a->transfer_manager);
  return NULL;
}

static PJRT_Error *slot_of(PJRT_AsyncHostToDeviceTransferManager *m, int i, Slot **out) {
  if (i < 0 || i >= m->n)
    return error_new(ERR_INVALID, "buffer %d of a transfer of %d buffers", i, m->n);
  *out = &m->slots[i];
  return NULL;
}

static void slot_finish(PJRT_AsyncHostToDeviceTransferManager *m, Slot *s) {
  DevBuffer *d = NULL;
  Tensor *t = s->tensor;
  s->tensor = NULL;
  s->done = true;
  Err *e = dev_buffer_new(m->memory->client->dev, m->memory->device->desc.id, t,
                          m->memory->kind != MEM_DEVICE, &d);
  buffer_fulfill(s->buffer, d, error_from(e));
}

ENTRY(AsyncHostToDeviceTransferManager_TransferData) {
  Slot *s;
  PTRY(slot_of(a->transfer_manager, a->buffer_index, &s));
  if (s->done) return error_new(ERR_PRECONDITION, "buffer %d is complete", a->buffer_index);
  int64_t size = (int64_t)tensor_bytes(s->tensor), end;
  if (a->offset < 0 || a->transfer_size < 0 || add_overflows(a->offset, a->transfer_size, &end) ||
      end > size)
    return error_new(ERR_INVALID, "bytes %lld + %lld of a buffer of %lld", (long long)a->offset,
                     (long long)a->transfer_size, (long long)size);
  if (a->transfer_size)
    memcpy((char *)s->tensor->data + a->offset, a->data, (size_t)a->transfer_size);
  if (a->is_last_transfer) slot_finish(a->transfer_manager, s);
  a->done_with_h2d_transfer = event_ready();
  return NULL;
}

ENTRY(AsyncHostToDeviceTransferManager_TransferLiteral) {
  Slot *s;
  PTRY(slot_of(a->transfer_manager, a->buffer_index, &s));
  if (s->done) return error_new(ERR_PRECONDITION, "buffer %d is complete", a->buffer_index);
  Tensor *t = s->tensor;
  if (a->shape_num_dims != (size_t)t->rank || (int)a->shape_element_type != (int)t->dtype)
    return error_new(ERR_INVALID, "the literal's shape is not the buffer's");
  for (int i = 0; i < t->rank; i++)
    if (a->shape_dims[i] != t->dims[i])
      return error_new(ERR_INVALID, "the literal's shape is not the buffer's");
  size_t elem = (size_t)dtype_bytes(t->dtype);
  int64_t *strides = NULL;
  if (a->shape_layout) {
    strides = xcalloc((size_t)t->rank + 1, sizeof *strides);
    Err *e = layout_strides(a->shape_layout, t->rank, t->dims, elem, strides);
    if (e) {
      free(strides);
      return error_from(e);
    }
  }
  copy_strided(t->data, NULL, a->data, strides, t->rank, t->dims, elem);
  free(strides);
  slot_finish(a->transfer_manager, s);
  a->done_with_h2d_transfer = event_ready();
  return NULL;
}

ENTRY(AsyncHostToDeviceTransferManager_RetrieveBuffer) {
  Slot *s;
  PTRY(slot_of(a->transfer_manager, a->buffer_index, &s));
  __atomic_fetch_add(&s->buffer->refs, 1, __ATOMIC_RELAXED);
  a->buffer_out = s->buffer;
  return NULL;
}

ENTRY(AsyncHostToDeviceTransferManager_Device) {
  a->device_out = a->transfer_manager->memory->device;
  return NULL;
}

ENTRY(AsyncHostToDeviceTransferManager_BufferCount) {
  a->buffer_count = (size_t)a->transfer_manager->n;
  return NULL;
}

ENTRY(AsyncHostToDeviceTransferManager_BufferSize) {
  Slot *s;
  PTRY(slot_of(a->transfer_manager, a->buffer_index, &s));
  int64_t n = dtype_bytes(s->buffer->dtype);
  for (int i = 0; i < s->buffer->rank; i++) n *= s->buffer->dims[i];
  a->buffer_size = (size_t)n;
  return NULL;
}

ENTRY(AsyncHostToDeviceTransferManager_SetBufferError) {
  Slot *s;
  PTRY(slot_of(a->transfer_manager, a->buffer_index, &s));
  if (s->done) return NULL;
  s->done = true;
  buffer_fulfill(s->buffer, NULL,
                 error_new((ErrCode)a->error_code, "%.*s", (int)a->error_message_size,
                           a->error_message ? a->error_message : ""));
  return NULL;
}

ENTRY(AsyncHostToDeviceTransferManager_AddMetadata) {
  (void)a; /* only for traces */
  return NULL;
}

/* ---- alias buffers ---- */

struct PJRT_FulfillAliasBufferCallback {
  PJRT_Buffer *alias;
};

ENTRY(Client_CreateAliasBuffer) {
  DType t = dtype_of(a->shape_element_type);
  PTRY(shape_check(t, a->shape_num_dims, a->shape_dims));
  Layout *layout;
  PTRY(error_from(layout_from_caller(a->shape_layout, (int)a->shape_num_dims, &layout)));
  PJRT_Memory *m = a->memory ? a->memory : a->client->memory_list[0];
  PJRT_FulfillAliasBufferCallback *cb = xcalloc(1, sizeof *cb);
  cb->alias = buffer_promise(m, t, (int)a->shape_num_dims, a->shape_dims);
  cb->alias->layout = layout;
  cb->alias->refs = 2;
  a->alias_buffer = cb->alias;
  a->fulfill_alias_buffer_cb = cb;
  return NULL;
}

ENTRY(Client_FulfillAliasBuffer) {
  PJRT_FulfillAliasBufferCallback *cb = a->fulfill_alias_buffer_cb;
  PJRT_Error *error = NULL;
  DevBuffer *data = NULL;
  if (a->status_code != PJRT_Error_Code_OK || !a->buffer)
    error = error_new(a->status_code ? (ErrCode)a->status_code : ERR_INTERNAL, "%.*s",
                      (int)a->error_message_size, a->error_message ? a->error_message : "");
  else if (!(error = error_copy(event_wait(a->buffer->ready))))
    data = dev_buffer_retain(a->buffer->data);
  buffer_fulfill(cb->alias, data, error);
  buffer_release(cb->alias);
  free(cb);
  return NULL;
}

/* ---- donation once the caller says so ---- */

typedef struct Dependency {
  PJRT_Buffer *out;
  DevBuffer *data;
} Dependency;

static void dependency_ready(PJRT_Buffer_DonateWithControlDependency_Callback_Args *a) {
  Dependency *d = a->callback_data;
  if (a->error_code != PJRT_Error_Code_OK) {
    buffer_fulfill(d->out, NULL,
                   error_new((ErrCode)a->error_code, "%.*s", (int)a->error_message_size,
                             a->error_message ? a->error_message : ""));
    dev_buffer_release(d->data);
  } else {
    buffer_fulfill(d->out, d->data, NULL);
  }
  buffer_release(d->out);
  free(d);
}

ENTRY(Buffer_DonateWithControlDependency) {
  PJRT_Buffer *b = a->buffer;
  Tensor *t;
  PTRY(error_from(buffer_tensor(b, &t)));
  DevBuffer *data;
  buffer_delete(b); /* first: both together may not fit */
  PTRY(error_from(dev_buffer_new(b->client->dev, b->memory->device->desc.id, t,
                                 b->memory->kind != MEM_DEVICE, &data)));
  Dependency *d = xcalloc(1, sizeof *d);
  d->out = buffer_promise(b->memory, b->dtype, b->rank, b->dims);
  d->out->layout = b->layout;
  d->out->refs = 2;
  d->data = data;
  a->callback_data = d;
  a->dependency_ready_callback = dependency_ready;
  a->out_buffer = d->out;
  return NULL;
}

/* ---- raw reads ---- */

static Err *read_raw(PJRT_Buffer *b, void *dst, int64_t offset, int64_t size) {
  Tensor *t;
  TRY(buffer_memory(b, &t));
  int64_t end;
  Err *e = NULL;
  if (offset < 0 || size < 0 || add_overflows(offset, size, &end) || end > (int64_t)tensor_bytes(t))
    e = err_new(ERR_INVALID, "bytes %lld + %lld of a buffer of %zu", (long long)offset,
                (long long)size, tensor_bytes(t));
  else if (size) memcpy(dst, (char *)t->data + offset, (size_t)size);
  tensor_release(t);
  return e;
}

ENTRY(Buffer_CopyRawToHost) {
  PTRY(error_from(read_raw(a->buffer, a->dst, a->offset, a->transfer_size)));
  a->event = event_ready();
  return NULL;
}

typedef struct RawRead {
  PJRT_Buffer *buffer;
  int64_t offset, size;
  PJRT_Event *event;
} RawRead;

static void raw_destination_ready(PJRT_Buffer_CopyRawToHostFuture_Callback_Args *a) {
  RawRead *r = a->callback_data;
  PJRT_Error *error = NULL;
  if (a->error_code != PJRT_Error_Code_OK)
    error = error_new((ErrCode)a->error_code, "%.*s", (int)a->error_message_size,
                      a->error_message ? a->error_message : "");
  else error = error_from(read_raw(r->buffer, a->dst, r->offset, r->size));
  event_set(r->event, error);
  event_release(r->event);
  buffer_release(r->buffer);
  free(r);
}

ENTRY(Buffer_CopyRawToHostFuture) {
  RawRead *r = xcalloc(1, sizeof *r);
  *r = (RawRead){a->buffer, a->offset, a->transfer_size, event_new()};
  __atomic_fetch_add(&a->buffer->refs, 1, __ATOMIC_RELAXED);
  a->event = event_retain(r->event);
  a->callback_data = r;
  a->future_ready_callback = raw_destination_ready;
  return NULL;
}

/* ---- streams of a running program: weft's programs have no send and receive ---- */

#define NO_STREAM(name)                                  \
  ENTRY(name) {                                          \
    (void)a;                                             \
    return error_new(ERR_UNIMPLEMENTED, "weft: " #name); \
  }
NO_STREAM(CopyToDeviceStream_Destroy)
NO_STREAM(CopyToDeviceStream_AddChunk)
NO_STREAM(CopyToDeviceStream_TotalBytes)
NO_STREAM(CopyToDeviceStream_GranuleSize)
NO_STREAM(CopyToDeviceStream_CurrentBytes)

/* ---- small objects ---- */

struct PJRT_ExecuteContext {
  int unused;
};

ENTRY(ExecuteContext_Create) {
  a->context = xcalloc(1, sizeof *a->context);
  return NULL;
}

ENTRY(ExecuteContext_Destroy) {
  free(a->context);
  return NULL;
}

struct PJRT_AsyncTrackingEvent {
  int unused;
};

ENTRY(Device_CreateAsyncTrackingEvent) {
  a->event = xcalloc(1, sizeof *a->event);
  return NULL;
}

ENTRY(AsyncTrackingEvent_Destroy) {
  free(a->event);
  return NULL;
}

ENTRY(Device_PoisonExecution) {
  a->poisoned = false; /* executions are complete when Execute returns */
  return NULL;
}

ENTRY(Device_ClearMemoryStats) {
  (void)a;
  return error_new(ERR_UNIMPLEMENTED, "weft: Device_ClearMemoryStats");
}
