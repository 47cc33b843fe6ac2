/* prof: what ran, on which device, when, and why not faster. A Prof is one recording: devices,
 * the programs that ran on them kernel by kernel, the runs, and what the host did meanwhile. It is
 * written for TensorBoard (XSpace), Perfetto (Chrome JSON), a terminal (text) and a browser (one
 * HTML file), and read back from XSpace, also from one that JAX wrote.
 *
 * Time        One axis for all: seconds from the beginning of the recording. A real device's spans
 *             are measured. A virtual device's come from its model, and the host's are moved to
 *             where they would be beside such a device: docs/profile.md, "Two clocks". Every number
 *             of a kernel is of one run of the kernel; of a program, of one run on one device.
 * Kernels     A program lists its kernels once; a run is the program's timeline moved to the run's
 *             start. Runs on a real device have spans of their own.
 * Steps       The runs with one step number. The time of a step is divided, without rest and
 *             without overlap, into the parts of PROF_PARTS (summary.c); all outputs show that
 *             division.
 * Ownership   Everything that a Prof shows lives in its arena; strings given to prof_* are copied.
 * Threads     a Prof: one at a time.
 */
#ifndef WEFT_PROF_PROF_H
#define WEFT_PROF_PROF_H

#include "base/base.h"

/* What a kernel waits for most of its time: X(id, word in files and tables). */
#define PROF_BOUNDS(X)  \
  X(COMPUTE, "compute") \
  X(VECTOR, "vector") X(MEMORY, "memory") X(LATENCY, "latency") X(NETWORK, "network")
typedef enum ProfBound {
#define X(id, word) PROF_##id,
  PROF_BOUNDS(X)
#undef X
      PROF_BOUND_COUNT
} ProfBound;
extern const char *const prof_bound_names[PROF_BOUND_COUNT];

/* Where the time of a step goes: X(id, word, what it says). */
#define PROF_PARTS(X)                                                                      \
  X(COMPUTE, "compute", "kernels bound by the matrix unit or arithmetic")                  \
  X(VECTOR, "vector", "kernels bound by the vector unit")                                  \
  X(MEMORY, "memory", "kernels bound by device memory")                                    \
  X(OVERHEAD, "overhead", "kernels bound by latency, launches, time between kernels")      \
  X(COLLECTIVE, "collective", "exchange between devices that nothing hides")               \
  X(TRANSFER, "transfer", "the device waits for an input to cross from the host")          \
  X(INPUT, "host input", "the device waits for the host: loading data, Python, compiling") \
  X(IDLE, "idle", "nothing to do for another reason")
typedef enum ProfPart {
#define X(id, word, says) PART_##id,
  PROF_PARTS(X)
#undef X
      PART_COUNT
} ProfPart;
extern const char *const prof_part_names[PART_COUNT], *const prof_part_says[PART_COUNT];

typedef struct ProfKernel {
  const char *name;   /* "convolution_add_fusion.12" */
  const char *op;     /* the operation that sets its cost: "dot_general" */
  const char *place;  /* the user's line, "train.py:41 (mlp/dense)"; "" when unknown */
  const char *shapes; /* "f32[8,16]->f32[8]", "" when unknown */
  ProfBound bound;
  double time_s, flops, bytes; /* bytes of device memory, read and written */
  double utilisation;          /* of the unit that bounds it, 0 ... 1; negative: unknown */
  double start_s, count; /* virtual: the first run, and how often it runs in a program's run */
  int loop;              /* the innermost loop it is in; -1 none */
  int n_reads;           /* of the program's lives; 0: none, or not known */
  const int *reads;
  bool modelled; /* its time rests on a model that was never checked kernel by kernel */
  bool collective;
} ProfKernel;

typedef struct ProfLoop { /* iteration i of what is in it starts i * body_s after the first */
  double body_s, trips;
  int parent; /* -1: none */
} ProfLoop;

typedef struct ProfLife {                 /* memory during one run */
  const char *name, *role, *type, *place; /* role: argument, output, temporary, prefetch */
  const char *owner;                      /* "parameters", "kept for later", "working" */
  double bytes, from_s, to_s;             /* on the run's own time */
  bool on_chip;
  /* which kernel makes it, -1: none, or not known; measured: it lives from the first run of one kernel to the last of another, -1: from the
   * beginning, to the end; prof_end finds the times */
  int from_kernel, to_kernel;
} ProfLife;

typedef struct ProfSpan { /* a kernel that ran; start on the run's own time */
  int kernel;
  double start_s, time_s, count; /* count: more than 1 when a loop is shown as one span */
} ProfSpan;

typedef struct ProfProgram {
  const char *name;
  uint64_t id;             /* of its runs' events in XSpace */
  double time_s;           /* virtual: of one run; 0: measured */
  double flops;            /* useful, of one run on one device; */
  double flops_recomputed; /* of them, a second time, as checkpoints have it */
  double peak_bytes;
  const char *
      unknowns; /* what a model's time leaves out, a clause: "1 loop of unknown length, counted once"; "" */
  int n_kernels, n_loops, n_lives, n_spans;
  ProfKernel *kernels;
  ProfLoop *loops;
  ProfLife *lives;
  ProfSpan *spans; /* of a virtual run, by start: made by prof_program_end */
} ProfProgram;

typedef struct ProfDevice {
  const char *kind; /* "TPU v3", "cpu" */
  bool tpu, gpu, is_virtual;
  double peak_flops, bandwidth; /* FLOP/s, bytes/s of its memory; 0: unknown */
  double memory_bytes, link;    /* capacity; bytes/s from the host. 0: unknown, not limited */
} ProfDevice;

typedef struct ProfRun {
  int device, program;
  int64_t step;
  double start_s, time_s;
  /* of the gap before it on its device: how long the host had not asked for it yet, and how long
   * after that its inputs were still crossing from the host */
  double input_s, transfer_s;
  int n_spans;
  const ProfSpan *spans; /* NULL: the program's */
} ProfRun;

typedef enum ProfHostKind {
  HOST_OTHER,
  HOST_INPUT, /* a batch is made */
  HOST_COMPILE,
  HOST_EXECUTE,
  HOST_TO_DEVICE,
  HOST_FROM_DEVICE,
  HOST_WAIT
} ProfHostKind;
typedef struct ProfHost { /* something the host did */
  const char *name;
  int lane; /* a thread: index into Prof.lanes */
  ProfHostKind kind;
  double start_s, time_s, bytes;
  int64_t step; /* -1: none */
} ProfHost;

typedef struct ProfTick { /* the wall clock (seconds from the origin) and this axis at one moment */
  double real_s, at_s;
} ProfTick;

typedef struct Prof {
  struct Arena *arena;
  const char *title;    /* "resnet50, batch 128, train step" */
  double origin_unix_s; /* the wall clock at second 0 */
  VEC(ProfDevice) devices;
  VEC(ProfProgram *) programs;
  VEC(ProfRun) runs; /* by device, then start: prof_end */
  VEC(const char *) lanes;
  VEC(ProfHost) host;
  VEC(ProfTick) ticks; /* rising; empty: the axis is the wall clock */
} Prof;

/* ---- making one ------------------------------------------------------------------------------ */

Prof *prof_new(const char *title);
void prof_free(Prof *p); /* NULL is fine */
const char *prof_str(Prof *p, const char *s);
int prof_device(Prof *p, const ProfDevice *d);
int prof_lane(Prof *p, const char *name); /* the lane of that name, made when there is none */
/* A program with room for its lists; fill kernels, loops, lives, then prof_program_end. */
ProfProgram *prof_program(Prof *p, const char *name, int kernels, int loops, int lives);
void prof_program_end(Prof *p, ProfProgram *q);
ProfRun *prof_run(Prof *p, int device, int program, int64_t step, double start_s, double time_s);
ProfHost *prof_host(Prof *p, int lane, ProfHostKind kind, const char *name, double start_s,
                    double time_s);
/* Sorts the runs and, when no run has a number, numbers the steps: a new step begins after each
 * run of the program that takes most of the time. Call it before writing. */
void prof_end(Prof *p);
/* Bound and utilisation of a measured kernel from its work, time and the device's peaks. */
void prof_bound(const ProfDevice *d, ProfKernel *k);
/* This machine's peaks, measured in about 0.1 s, once: f32 multiply-adds in registers, all cores;
 * and bytes/s of a sum over a large array. 0 where not known how. */
double prof_host_flops(void);
double prof_host_bandwidth(void);
/* Gives them to the devices that are not virtual: after the recording, so that it does not wait. */
void prof_host_peaks(Prof *p);

/* ---- host and virtual device together -------------------------------------------------------- */

/* Moves the runs of a virtual device to where an input pipeline lets them be: batch k is ready
 * once it was made (one maker, `ahead` finished batches at most) and has crossed to the device;
 * step k starts when the device is free and batch k is there. Adds the makers' spans on the lanes
 * "input" and "transfer". make_s[k]: host time for batch k; run k of each device takes batch k. */
typedef struct ProfInput {
  int n;
  const double *make_s;
  double bytes; /* of a batch, to all devices of one host link */
  int ahead;
} ProfInput;
void prof_join_input(Prof *p, const ProfInput *in);

/* ---- what it says ---------------------------------------------------------------------------- */

typedef struct ProfStep {
  int64_t number;
  double start_s, time_s, part_s[PART_COUNT]; /* the parts add up to the time */
  double flops, flops_recomputed;
} ProfStep;
typedef struct ProfTotal { /* a kernel over all steps that count */
  const ProfKernel *kernel;
  const ProfProgram *program;
  double time_s, count;
} ProfTotal;
typedef struct ProfSummary {
  int device;
  int n_steps, first; /* steps[first ...] count: the first one warms up when there are more */
  ProfStep *steps;
  ProfStep mean; /* of those that count */
  double median_s, min_s, max_s;
  int n_totals;
  ProfTotal *totals; /* dearest first */
  double mfu, hfu; /* the model's work of the peak; with what is computed again; 0: no known peak */
  double busy, input; /* shares of the step: device works; device waits for the host */
  double make_s;      /* mean host time to make a batch; 0: no such span */
  double peak_bytes;
  ProfPart dearest; /* of the parts */
} ProfSummary;
/* Of one device. errors: ERR_NOT_FOUND when nothing ran on it. Lives in p's arena. */
Err *prof_summary(Prof *p, int device, ProfSummary **out);
/* One line that answers "why not faster". */
void prof_verdict(const Prof *p, const ProfSummary *s, Buf *out);

/* ---- writing and reading --------------------------------------------------------------------- */

void prof_print(Prof *p, const ProfSummary *s, int max_kernels, Buf *out); /* for a terminal */
void prof_json(Prof *p, const ProfSummary *s, Buf *out);
void prof_chrome(Prof *p, Buf *out);                     /* {"traceEvents": [...]} */
void prof_html(Prof *p, const ProfSummary *s, Buf *out); /* one file, nothing from outside */
/* beside_host: the caller adds a plane of the host's threads itself (JAX does); ours become lines
 * of the first device. */
void prof_xspace(const Prof *p, bool beside_host, Buf *out);
/* An XSpace by weft, or with JAX's host threads in it. errors: ERR_DATA_LOSS, ERR_NOT_FOUND when
 * there is no device in it */
Err *prof_read_xspace(Str bytes, Prof **out);

/* dir/plugins/profile/RUN/HOST.xplane.pb and HOST.trace.json.gz; RUN is the time of day.
 * *out_folder (malloc'd): that folder. */
Err *prof_write(Prof *p, const char *dir, char **out_folder);
/* The newest *.xplane.pb under a log folder, or the file itself; malloc'd. */
Err *prof_find(const char *path, char **out);

#endif
