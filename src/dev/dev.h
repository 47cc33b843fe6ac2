/* dev: the device interface. A Dev is an opened set of n equal devices in one process; a backend is
 * one folder of src/dev exporting `const DeviceOps dev_<folder>`, found by the build (dev_list.inc
 * is generated).
 *
 * A program over N processes (replicas x partitions) is one job: the backend runs it once for all N
 * (ARCHITECTURE.md, "Many devices in one process"); this layer cuts arguments and joins results by their
 * shardings. A run may also be of some of the processes only: its collectives then meet those of the
 * others' runs (exchange.h).
 *
 * Buffers     reference counted; data lives in host memory (phantom devices: no data). A buffer
 *             belongs to one device and is accounted against that device's memory: going over the
 *             limit is ERR_EXHAUSTED with a report.
 * Threads     everything here may be called from any thread.
 */
#ifndef WEFT_DEV_DEV_H
#define WEFT_DEV_DEV_H

#include "dev/exchange.h"
#include "ir/ir.h"
#include "prof/prof.h"

typedef struct Dev Dev;
typedef struct DevProgram DevProgram;
typedef struct DevBuffer DevBuffer;
typedef struct DeviceOps DeviceOps;

/* ---- what a backend provides ----------------------------------------------------------------- */

typedef struct DevInfo {           /* one device; strings live as long as the Dev */
  const char *kind;                /* "cpu", "TPU v3", "NVIDIA A100-SXM4-80GB" */
  int64_t memory_bytes;            /* 0: not limited */
  int coords[3], core;             /* TPUs: position in the torus and core on chip; else 0 */
  const char *vendor, *capability; /* GPUs: "NVIDIA", "8.0"; else NULL */
  int units;                       /* GPUs: streaming multiprocessors or compute units; else 0 */
  int process;
} DevInfo;

/* A program over several partitions: which of its processes' programs runs. */
typedef enum DevCut {
  DEV_WHOLE,       /* the program as given, once for all; arguments and results are cut around it */
  DEV_CUT_LIGHTER, /* that of one process (compile/spmd) where it has less to do than the whole, and none of the caller's
                     functions to call */
  DEV_CUT          /* that of one process wherever there is one */
} DevCut;

typedef struct DevCompileOpts {
  int replicas, partitions; /* at least 1 */
  bool auto_spmd;           /* use_spmd_partitioning */
  bool keep;                /* dev_program_save may be called */
  bool
      round_each; /* bf16 and f16 are rounded after each operation (xla_allow_excess_precision=false) */
  const int
      *assignment; /* [replicas * partitions] the device of each process, replica by replica, while
                            compiling: where exchanges are timed; NULL: not known */
  DevCut cut;
  bool
      quiet; /* leave out calls of the caller's that give nothing (jax.debug.print), where the program
                 is not cut: another OS process makes them */
} DevCompileOpts;

/* The processes that one run is of. */
typedef struct DevPart {
  int n;
  const int *process; /* ascending; NULL: all of the program's */
  const int *devices; /* [n] where they run */
  const int *job;     /* with `process`: the device of every process of the program */
  Exchange *exchange; /* with `process`: where it meets the others; NULL: at the device's */
} DevPart;

typedef struct DevCost { /* -1: unknown */
  double flops, transcendentals, bytes_accessed, optimal_s;
} DevCost;
typedef struct DevMemory { /* bytes of one device */
  int64_t code, args, outputs, aliased, temp, peak;
} DevMemory;

/* What one run took. A real device reports wall time; a virtual one its own clock. */
typedef struct DevRun {
  double time_s, energy_j;
  bool trace; /* in: a real device fills `spans` (malloc'd) with its kernels, numbered as by
                 DeviceOps.profile */
  int n_spans;
  ProfSpan *spans;
} DevRun;

struct DeviceOps {
  const char *name; /* "cpu" */
  bool async;       /* runs may go on after the caller was told: they take real time */
  bool cuts;        /* DEV_CUT_LIGHTER is for it */
  /* args: what follows the name and a colon ("8" of "cpu:8"; a chip's full name for sim), may be
   * empty. Sets dev->n and dev->impl. errors: ERR_INVALID for a bad name or number */
  Err *(*open)(Dev *dev, Str args);
  void (*close)(Dev *dev);
  void (*info)(const Dev *dev, int i, DevInfo *out);
  /* Takes nothing: `m` is borrowed during the call (already verified); clone what is kept. Sets
   * prog->impl. */
  Err *(*compile)(DevProgram *prog, const Module *m);
  void (*program_free)(DevProgram *prog);
  /* args: whole values (n == 1) or one for each process of the part (n == part->n); donated[i]:
   * the backend may overwrite the argument's memory when it holds the only reference. results:
   * filled likewise. */
  Err *(*run)(DevProgram *prog, const DevPart *part, const Shards *args, const bool *donated,
              Shards *results, DevRun *out_run);
  /* optional: NULL means unknown */
  Err *(*cost)(const DevProgram *prog, DevCost *out);
  Err *(*memory)(const DevProgram *prog, DevMemory *out);
  /* ERR_EXHAUSTED when a run does not fit beside `held` bytes of a device that buffers take which
   * are no arguments of it */
  Err *(*beside)(const DevProgram *prog, int64_t held);
  Err *(*report)(const DevProgram *prog, Buf *out_json); /* kernels and their times */
  /* optional, both or none: what recordings say of a device, and a program's kernels (a real
   * device: known after its first run) */
  void (*profile_device)(const Dev *dev, ProfDevice *out);
  Err *(*profile)(const DevProgram *prog, Prof *p, ProfProgram **out);
  /* optional: bytes a tensor takes in the device's memory (padded layout); NULL: its unpadded size
   */
  int64_t (*footprint)(const Dev *dev, const Tensor *t);
  /* optional, all or none: compiled programs as bytes, of one process. kept: adds what they depend
   * on besides the program (machine, build, settings); false: nothing can be kept. save: once, right
   * after compile, or when its code is complete; false: not this one, or not yet. load: like compile; errors: ERR_DATA_LOSS damaged */
  bool (*cache_key)(Buf *out);
  bool (*save)(DevProgram *prog, Buf *out);
  Err *(*load)(DevProgram *prog, Str saved);
  /* optional: memory for an argument, uninitialised, or of zeros, which takes none until it is
   * written; NULL: tensor_new */
  Err *(*tensor)(DType t, int rank, const int64_t *dims, bool zeros, Tensor **out);
};

struct Dev {
  const DeviceOps *ops;
  void *impl;
  int n;
  char *spec;                  /* "cpu:8" */
  struct DevAccount *accounts; /* per device, private */
  Exchange *exchange;          /* where runs of some of a program's processes meet */
  Peers *peers;                /* NULL: all devices are of this process; else owner[device] */
  int *owner;
};

struct DevProgram {
  int refs;
  const DeviceOps *ops;
  Dev *dev;
  void *impl;
  DevCompileOpts opts;
  int copies; /* more than 1: replicas that exchange nothing, compiled as one (opts.replicas is 1) */
  int n_args, n_results;
  Module *module; /* what the backend runs: the program as given, or that of one process (opts.cut),
                     with local types; owned. Of a loaded program only declarations: main->body is
                     NULL */
  Func *main;
  Module *
      given; /* types, shardings and attributes as given; another than `module` where that is cut */
  Func *given_main;
  Sharding **arg_shardings,
      **result_shardings; /* NULL entries: replicated (whole on every device) */
  const Mesh **arg_meshes, **result_meshes;
  int *
      aliases; /* per argument: the result that it is given up for (tf.aliasing_output, jax.buffer_donor); -1: none */
  bool *result_on_host;
  bool differs; /* devices may have different results that are said to be the same (differ.h) */
  Buf cache_key,
      cache_note; /* of its entry in the cache, until its code is complete (compile_cache.c) */
};

/* What open() of a backend is given behind its name, as a number of devices: "8" of "cpu:8"; 1 where there is nothing. */
Err *dev_count(Str args, int *out);

/* ---- for the plugin and the command line ----------------------------------------------------- */

/* Devices by name: "cpu", "cpu:8", "interp", "interp:8", "null", or a chip as clouds name it
 * ("tpu-v3-8", "A100-80GB:8"). NULL or "": WEFT_DEVICE, else "cpu". errors: ERR_NOT_FOUND listing
 * what there is. */
Err *dev_open(const char *spec, Dev **out);
void dev_close(Dev *d);
/* The devices belong to several processes of a job, of which this is one: owner[device]. Takes both. */
void dev_share(Dev *d, Peers *peers, int *owner);

/* Are there as many devices as the program has processes? errors: ERR_INVALID */
Err *dev_has_room(const Dev *d, const DevCompileOpts *opts);
/* Verifies, records shardings and donation, compiles. The module is borrowed. errors: of dev_has_room too */
Err *dev_compile(Dev *d, const Module *m, const DevCompileOpts *opts, DevProgram **out);
/* Compiled programs as bytes, of one process. dev_cache_key: adds to `key` all that such bytes depend on besides the
 * module and the number of copies; false: programs of this kind are not kept. save: once, of one with opts.keep, right after
 * dev_compile or from dev_cache_complete; false: this one cannot be kept, or not yet. load: errors: ERR_DATA_LOSS damaged */
bool dev_cache_key(const Dev *d, const DevCompileOpts *opts, Buf *key);
bool dev_program_save(DevProgram *p, Buf *out);
Err *dev_program_load(Dev *d, Str saved, const DevCompileOpts *opts, DevProgram **out);

/* The same through the cache on disk, by the bytes that the program was read from (compile_cache.c). A note
 * of the caller's is kept beside it. dev_cache_put: opts.keep was set; what cannot be kept is not. */
bool dev_cache_get(Dev *d, Str code, const DevCompileOpts *opts, Buf *note, DevProgram **out);
void dev_cache_put(DevProgram *p, Str code, Str note);
/* For backends: what dev_cache_put did not find complete is so now. On any thread. */
void dev_cache_complete(DevProgram *p);
DevProgram *dev_program_retain(DevProgram *p);
void dev_program_release(DevProgram *p);

struct DevBuffer {
  int refs;
  Dev *dev;
  int device;
  Tensor *t;        /* the device's own part (a shard), dims are local; NULL after delete */
  bool pinned_host; /* not in device memory */
  bool donated;
  bool apart; /* said to be the same on all devices, and may not be (DevProgram.differs) */
  /* for recordings: in which one, and when on its axis a virtual device has the data */
  int recording;
  double arrives_s;
};
/* Takes the reference of `t`. errors: ERR_EXHAUSTED with the device's memory report. */
Err *dev_buffer_new(Dev *d, int device, Tensor *t, bool pinned_host, DevBuffer **out);
DevBuffer *dev_buffer_retain(DevBuffer *b);
void dev_buffer_release(DevBuffer *b);
void dev_buffer_delete(DevBuffer *b); /* gives the memory back, the handle stays */

typedef struct DevStats {
  int64_t in_use, peak, limit, largest, allocs;
} DevStats;
void dev_stats(const Dev *d, int device, DevStats *out);

/* How many processes the program is for, and whether one of them may run without the others. */
int dev_program_processes(const DevProgram *p);
bool dev_program_splits(const DevProgram *p);
/* The backend runs the program of one process: every process has arguments and results of its own. */
bool dev_program_is_cut(const DevProgram *p);

/* Bytes of one device's part of an argument or a result, unpadded, also of a program that runs whole. */
int64_t dev_argument_bytes(const DevProgram *p, int i);
int64_t dev_result_bytes(const DevProgram *p, int j);

/* Does each of a program's processes have its own part of the argument? */
bool dev_argument_is_parted(const DevProgram *p, int i);

/* Does the device keep time of its own (a virtual chip)? */
bool dev_is_virtual(const Dev *d);

/* Would a run of n processes with these arguments find room now? errors: ERR_EXHAUSTED */
Err *dev_fits(const DevProgram *p, int n, const int *devices, DevBuffer *const *const *args);

/* args[k][i] for the k-th process of the part; outs[k][j] are new references. donated[i]: the caller
 * gives the argument up; its buffer is deleted afterwards. out_run may be NULL; its `trace` is read,
 * the rest is written. A part of a program's processes waits for the others where they exchange: each
 * device is in one such run at a time. A program that does not split (dev_program_splits) can run in
 * parts only where each has all of its process's devices: each then computes the whole. */
Err *dev_execute(DevProgram *p, const DevPart *part, DevBuffer *const *const *args,
                 const bool *donated, DevBuffer **const *outs, DevRun *out_run);

#endif
