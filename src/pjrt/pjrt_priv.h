/* The plugin's own objects and helpers. */
#ifndef WEFT_PJRT_PJRT_PRIV_H
#define WEFT_PJRT_PJRT_PRIV_H

#include "dev/dev.h"
#include "pjrt/pjrt.h"

#include <pthread.h>
#include <stdlib.h>

#define PLATFORM_VERSION "weft " WEFT_VERSION

/* Every entry: defines weft_<name>, which the table in api.c names. */
#define ENTRY(name) PJRT_Error *weft_##name(PJRT_##name##_Args *a)
#define PJRT_V(name) void weft_##name(PJRT_##name##_Args *a);
#define PJRT_X(name) ENTRY(name);
PJRT_SLOTS(PJRT_V, PJRT_X)
#undef PJRT_V
#undef PJRT_X
#define HAS(name, field) PJRT_HAS(a, PJRT_##name##_Args, field)
/* Writes an optional newer output field if the caller's struct has it. */
#define SET_IF(name, field, value)            \
  do {                                        \
    if (HAS(name, field)) a->field = (value); \
  } while (0)

/* ---- errors (error.c) ---- */

struct PJRT_Error {
  const PJRT_Error_FunctionTable *vtable;
  int code;
  char *message; /* without the code: callers print it in front */
};
PJRT_Error *error_from(Err *take); /* NULL stays NULL */
PJRT_Error *error_new(ErrCode code, const char *fmt, ...) PRINTF_LIKE(2, 3);
PJRT_Error *error_copy(const PJRT_Error *e); /* NULL stays NULL */
Err *error_to_err(const PJRT_Error *e);
void error_free(PJRT_Error *e);
#define PTRY(expr)              \
  do {                          \
    PJRT_Error *ptry_ = (expr); \
    if (ptry_) return ptry_;    \
  } while (0)

/* ---- events (event.c) ---- */

typedef struct EventWaiter {
  PJRT_Event_OnReadyCallback fn;
  void *arg;
} EventWaiter;
struct PJRT_Event {
  int refs;
  pthread_mutex_t lock;
  pthread_cond_t cond;
  bool ready;
  PJRT_Error *error; /* set before ready, then constant */
  VEC(EventWaiter) waiters;
};
PJRT_Event *event_new(void);   /* one reference */
PJRT_Event *event_ready(void); /* one for all */
bool event_is_ready(const PJRT_Event *e);
PJRT_Event *event_retain(PJRT_Event *e);
void event_release(PJRT_Event *e);               /* NULL is fine */
void event_set(PJRT_Event *e, PJRT_Error *take); /* once; later calls only free the error */
/* Calls fn when ready, at once if it is; fn owns the error. */
void event_on_ready(PJRT_Event *e, PJRT_Event_OnReadyCallback fn, void *arg);
const PJRT_Error *event_wait(PJRT_Event *e); /* the error stays the event's */

/* ---- client, devices, memories (client.c), topologies (topology.c) ---- */

typedef enum MemoryKind { MEM_DEVICE, MEM_PINNED_HOST, MEM_UNPINNED_HOST, MEM_KINDS } MemoryKind;
extern const char *const memory_kind_names[MEM_KINDS];
int memory_kind_from(Str name); /* -1 when unknown */

typedef struct MemoryData { /* what a caller ties to a memory */
  const void *key;
  void *data;
  void (*dtor)(void *);
} MemoryData;
struct PJRT_Memory {
  const PJRT_Memory_FunctionTable *vtable;
  PJRT_Client *client;
  PJRT_Device *device;
  MemoryKind kind;
  int id;
  char *text;
  pthread_mutex_t lock;
  VEC(MemoryData) data;
};

struct PJRT_DeviceDescription {
  int id, process;
  const char *kind;
  char *text, *debug;
  int64_t coords[3];
  PJRT_NamedValue attrs[6];
  int n_attrs;
};
struct PJRT_Device {
  PJRT_Client *client;
  struct Queue *queue;
  int near_id;      /* among those of its process; -1: of another */
  bool asked;       /* somebody asked when a buffer is ready, since the last run */
  int64_t promised; /* bytes of results under way */
  PJRT_DeviceDescription desc;
  PJRT_Memory memories[MEM_KINDS];
  PJRT_Memory *memory_list[MEM_KINDS];
};

struct PJRT_TopologyDescription {
  Dev *dev;
  bool owns_dev;
  char *name;
  PJRT_DeviceDescription *descs; /* NULL: the client's */
  PJRT_DeviceDescription **list;
  PJRT_NamedValue attrs[3];
  int n_attrs;
  char *platform;
};

struct PJRT_Client {
  int refs;
  Dev *dev;
  int n, process;
  PJRT_Device *devices;
  PJRT_Device **device_list;
  PJRT_Memory **memory_list; /* n * MEM_KINDS */
  int n_near;                /* devices of this process */
  PJRT_Device **near_list;
  PJRT_Memory **near_memories; /* n_near * MEM_KINDS */
  PJRT_TopologyDescription topology;
};
PJRT_Client *client_retain(PJRT_Client *c);
void client_release(PJRT_Client *c);
/* Of several processes (job.c). */
typedef struct JobOptions {
  int node, nodes; /* this process of how many, above 1 */
  Str coordinator; /* HOST:PORT where process 0 keeps their store; empty: the caller does, in args */
  const PJRT_Client_Create_Args *args;
} JobOptions;
/* A device shared by the processes. spec: this one's own. errors: of peers_open and peers_hub_open; a slice
 * that cannot be divided */
Err *job_open(const char *spec, const JobOptions *j, Dev **out);
/* Of a virtual chip's devices, where hosts have so many chips along each side (hosts.c). false: it is no
 * chip */
typedef struct HostPlace {
  int host, slice; /* slice -1: there is one */
} HostPlace;
bool hosts_of(const char *spec, const int64_t *host, int n, HostPlace *out);
void describe_device(const Dev *d, int i, PJRT_DeviceDescription *out);
void description_clear(PJRT_DeviceDescription *d);
void named_int(PJRT_NamedValue *v, const char *name, int64_t x);
void named_ints(PJRT_NamedValue *v, const char *name, const int64_t *x, size_t n);
void named_float(PJRT_NamedValue *v, const char *name, double x);
extern const PJRT_MemoryDescriptions_Extension memory_descriptions_extension;

/* ---- runs that go on after Execute returned (queue.c) ---- */

struct Queue *queue_new(bool is_virtual);
void queue_drain(struct Queue *q);                  /* waits until all that was pushed is done */
void queue_drain_for(struct Queue *q, int seconds); /* waits no longer than that */
void queues_drain_virtual(void);                    /* all of virtual devices, of all clients */
void queue_close(struct Queue *q);                  /* what is in it still runs */
/* Runs fn(arg) after all that was pushed before. patient: waits while many are in the queue. false:
 * there is no thread to be had. */
bool queue_push(struct Queue *q, void (*fn)(void *arg), void *arg, bool patient);

/* ---- layouts (layouts.c) ---- */

/* The order in which callers see an array's elements. Tensors are row-major whatever the layout of
 * their buffer says: elements are put in its order where they leave (ToHostBuffer), and memory is
 * shown in place of row-major buffers only. One object for each order; they belong to nobody. */
struct PJRT_Layouts_MemoryLayout {
  int rank;
  bool is_row_major;
  Str text; /* "{1,0}": minor to major */
  int64_t minor_to_major[];
};
typedef PJRT_Layouts_MemoryLayout Layout;
Layout *layout_row_major(int rank);
Layout *layout_of_order(int rank, const int64_t *minor_to_major); /* a permutation */
/* NULL: row-major. errors: tiles, strides, wrong rank */
Err *layout_from_caller(const PJRT_Buffer_MemoryLayout *l, int rank, Layout **out);
/* Byte strides of a layout; of one as ToHostBuffer gives it. errors: tiles, wrong rank */
void layout_dense_strides(const Layout *l, const int64_t *dims, size_t elem, int64_t *out);
Err *layout_strides(const PJRT_Buffer_MemoryLayout *l, int rank, const int64_t *dims, size_t elem,
                    int64_t *out);
/* Checks the layouts that a program asks of its arguments and results (mhlo.layout_mode) and
 * settles those that it leaves open: row-major for arguments, for results the order that takes no
 * transposition. */
Err *layouts_choose(Module *m);
/* Of an argument or a result of a program whose layouts are settled. */
Layout *layout_of_value(const NamedAttr *attrs, int n, const Type *t);
extern const PJRT_Layouts_Extension layouts_extension;

/* ---- buffers (buffer.c, copy.c) ---- */

struct PJRT_Buffer {
  int refs;            /* the caller's handle, and transfers under way */
  PJRT_Client *client; /* holds a reference */
  PJRT_Memory *memory;
  DType dtype;
  int rank;
  int64_t *dims;
  Layout *layout;
  DevBuffer *data; /* NULL until `ready` for buffers under way, and after an error */
  PJRT_Event *ready;
  bool from_queue; /* a result of a run in a device's queue */
  bool deleted;    /* for callers; the data goes when no run holds it any more */
  int holds;       /* runs under way that read it */
  int external_refs;
  Tensor *external; /* kept alive for them */
};
/* A buffer whose data comes later: buffer_fulfill. */
PJRT_Buffer *buffer_promise(PJRT_Memory *m, DType dtype, int rank, const int64_t *dims);
void buffer_fulfill(PJRT_Buffer *b, DevBuffer *take, PJRT_Error *take_error);
/* One of several that are there at once: buffer_fill each, then event_set. */
PJRT_Buffer *buffer_promise_until(PJRT_Event *ready, PJRT_Memory *m, DType dtype, int rank,
                                  const int64_t *dims);
void buffer_fill(PJRT_Buffer *b, DevBuffer *take); /* NULL: after an error */
/* A finished buffer; takes t. */
Err *buffer_make(PJRT_Memory *m, Tensor *t, PJRT_Buffer **out);
PJRT_Buffer *buffer_wrap(PJRT_Memory *m, DevBuffer *take);
/* Waits until the data is there. *out is a new reference to the tensor. */
Err *buffer_tensor(PJRT_Buffer *b, Tensor **out);
/* The same for who reads memory in place. errors: not row-major */
Err *buffer_memory(PJRT_Buffer *b, Tensor **out);
/* Memory that others may see (the caller's, or a view's base): a program must not write to it. */
bool tensor_is_foreign(const Tensor *t);
void buffer_release(PJRT_Buffer *b); /* NULL is fine */
void buffer_delete(PJRT_Buffer *b);
/* Keeps the buffer and its data for a run, whoever deletes it meanwhile. errors: deleted already */
Err *buffer_hold(PJRT_Buffer *b);
void buffer_unhold(PJRT_Buffer *b);
bool dims_are_sane(size_t n, const int64_t *dims);
/* Copies elements between strided layouts; strides in bytes, NULL: row-major. */
void copy_strided(void *dst, const int64_t *dst_strides, const void *src,
                  const int64_t *src_strides, int rank, const int64_t *dims, size_t elem);
PJRT_Memory *memory_of(PJRT_Memory *m,
                       PJRT_Device *d); /* m, else the device's default; may be NULL */

/* ---- protobuf (proto.c) ---- */

typedef struct CompileOptions {
  int replicas, partitions;
  bool spmd, shardy;
  int n_assignment; /* 0: none; replica-major: [replica * partitions + partition] */
  int *assignment;
  bool propagate_results; /* results without a sharding may get one */
  bool round_each;        /* xla_allow_excess_precision is false: here, or else in XLA_FLAGS */
} CompileOptions;
Err *compile_options_parse(Str bytes, CompileOptions *out);
void compile_options_clear(CompileOptions *o);
void device_assignment_proto(Buf *out, int replicas, int partitions, const int *ids);
/* OpSharding of a value; empty: replicated. */
void op_sharding_proto(Buf *out, const Sharding *s, const Mesh *mesh);
/* Answers the program's calls to InspectSharding (inspect.c). */
Err *shardings_inspect(const Module *m);

/* ---- programs (executable.c, execute.c) ---- */

struct PJRT_Executable {
  int refs;
  PJRT_Client *client; /* NULL for ahead-of-time ones, which own their device */
  Dev *own_dev;
  DevProgram *program;
  CompileOptions opts;
  char *name;
  Buf code, options; /* as given */
  Buf readable;      /* for OptimizedProgram, made when asked for */
  char fingerprint[40];
  int n_in, n_out;
  const char **kinds_in, **kinds_out; /* memory kinds */
  size_t *kind_in_sizes, *kind_out_sizes;
  Layout **layouts_in, **layouts_out;
  PJRT_Buffer_Type *out_types;
  int64_t *out_dims; /* of what a device has */
  size_t *out_ranks;
  char **sharding_in, **sharding_out;
  size_t *sharding_in_sizes, *sharding_out_sizes;
  PJRT_NamedValue costs[4];
  int n_costs;
  bool not_queued; /* calls into the caller's process, or makes results of unknown size */
  int64_t run_ns;  /* of the last run; before the first, what it must take at least */
};
struct PJRT_LoadedExecutable {
  int refs;
  PJRT_Executable *exe;
  int n;
  PJRT_Device **devices; /* of process 0, 1, ... */
  int *ids;              /* their numbers */
  int n_near;            /* of those, devices of this OS process: */
  PJRT_Device **near_devices;
  PJRT_LogicalDeviceIds *logical; /* [n_near] */
  int *near;                      /* [n_near] which of the program's processes */
  bool deleted;
};
/* What is asked of a program's operations, counted once. */
typedef struct ProgramFacts {
  DevCost cost; /* -1: unknown */
  bool loops;   /* whose rounds nobody has counted */
  bool not_queued;
} ProgramFacts;
/* compiled.c: programs compiled, or found in the cache on disk as they once were compiled. */
/* cut, quiet: DevCompileOpts */
Err *program_make(Dev *d, Str code, const CompileOptions *o, DevCut cut, bool quiet,
                  ProgramFacts *facts, DevProgram **out);
void program_save(Str code, const char *name); /* where WEFT_SAVE_PROGRAMS says (save.c) */
Err *executable_compile(PJRT_Client *c, Dev *d, Str code, Str options, PJRT_Executable **out);
Err *executable_load(PJRT_Client *c, PJRT_Executable *take, PJRT_LoadedExecutable **out);
PJRT_Executable *executable_retain(PJRT_Executable *e);
void executable_release(PJRT_Executable *e);
void loaded_release(PJRT_LoadedExecutable *l);
extern const PJRT_Shardings_Extension shardings_extension;
/* Bytes handed out with a deleter. */
typedef struct OwnedBytes {
  Buf b;
} OwnedBytes;

void program_cost(const DevProgram *p, DevCost *out); /* counted from the ops (cost.c) */

/* ---- recordings (profiler.c): nothing happens while none is under way ---- */

typedef struct ProfilerSpan { /* of a call that began while recording; session 0: none */
  int session;
  double from_s;
} ProfilerSpan;
typedef struct ProfilerRun {
  ProfilerSpan span;
  bool is_virtual;
  double asked_s;
} ProfilerRun;
bool profiler_on(void);
ProfilerSpan profiler_begin(void);
void profiler_compiled(ProfilerSpan s, const char *name);
void profiler_to_device(ProfilerSpan s, PJRT_Buffer *b);
/* The caller waited for the data, or has read it. */
void profiler_waits(ProfilerSpan s, const PJRT_Buffer *b, bool reads);
/* Around dev_execute: args[process][argument], outs[process][result]; failed: after an error. */
ProfilerRun profiler_run_begin(const Dev *dev);
void profiler_run_end(const ProfilerRun *r, DevProgram *p, const DevPart *part, const DevRun *run,
                      DevBuffer *const *const *args, DevBuffer *const *const *outs);
void profiler_run_failed(const ProfilerRun *r);
extern const PJRT_Profiler_Extension profiler_extension;

void clock_advance(const DevPart *part, double seconds); /* of a run (clock.c) */
double clock_seconds(int device);

/* ---- what the plugin says of itself (platform.c) ---- */

/* The platform's name, malloc'd: the option "platform_name", else WEFT_PLATFORM, else "tpu" where this
 * library stands in for libtpu (TPU_LIBRARY_PATH), else "weft". */
char *platform_name(size_t n_options, const PJRT_NamedValue *options);
const char *device_default(void); /* without WEFT_DEVICE: "cpu"; for libtpu a TPU */
/* The caller's own version of StableHLO, "1.8.3": none newer is reported from now on. */
void stablehlo_limit(Str version);
const int64_t *stablehlo_newest(void); /* three numbers: what is reported */
const char *stablehlo_version(void);   /* the caller's, when it is older than ours; else NULL */

/* ---- extras ---- */
void callbacks_register(void); /* callback.c: custom calls back into Python */

#endif
