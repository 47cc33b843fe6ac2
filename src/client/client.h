/* client: loads any PJRT plugin (weft's own, libtpu, XLA's CPU and CUDA plugins) and drives it from
 * C. Knows nothing of the compiler: a program is text or bytecode, a tensor is bytes.
 *
 * Element types are DType = PJRT_Buffer_Type numbers. Sub-byte elements are one byte each on the
 * host. Data is dense row-major.
 * Threads    a Client and its programs may be used from several threads; a ClientBuffer by one at a
 *            time.
 * Errors     whatever the plugin says comes back as an Err with its code and text.
 */
#ifndef WEFT_CLIENT_CLIENT_H
#define WEFT_CLIENT_CLIENT_H

#include "base/base.h"
#include "peers/peers.h"

typedef struct Client Client;
typedef struct ClientProgram ClientProgram;
typedef struct ClientBuffer ClientBuffer;

typedef struct ClientOption { /* a create option (PJRT_NamedValue) */
  const char *name;
  const char *str; /* a string, or NULL: the number */
  int64_t num;
} ClientOption;

/* plugin: path of a shared library; NULL finds weft's own: WEFT_PLUGIN, beside the executable,
 * ../lib. For weft's own the option "device" (string) chooses the device ("cpu", "tpu-v3-8", ...);
 * the XLA CPU plugin has "cpu_device_count" (number). errors: ERR_NOT_FOUND with what was tried;
 * ERR_PRECONDITION for another ABI major version */
Err *client_open(const char *plugin, const ClientOption *opts, int n_opts, Client **out);

/* Several processes with one client each, whose devices are those of all; the plugin takes part
 * (PJRT_Client_Create's num_nodes, node_id and key-value callbacks). */
typedef struct ClientJob {
  int id, n; /* this process of how many */
  PeersHub *hub;
} ClientJob;
/* job NULL: as client_open. errors: also what the plugin says of the other processes */
Err *client_open_job(const char *plugin, const ClientOption *opts, int n_opts, const ClientJob *job,
                     Client **out);
/* How many of so many replicas run on this process's devices, its first ones; *first: the number of the
 * first of them. Whole and in order, the first processes have one more where they do not divide. */
int client_share(const ClientJob *job, int replicas, int *first);

void client_close(Client *c);                 /* NULL is fine; programs and buffers must be gone */
const char *client_platform(const Client *c); /* "weft", "cpu", "tpu" */
int client_device_count(const Client *c);     /* addressable ones */
const char *client_device_kind(const Client *c, int device);

typedef struct ClientMemory { /* bytes; -1 unknown */
  int64_t in_use, peak, limit;
} ClientMemory;
Err *client_memory(const Client *c, int device,
                   ClientMemory *out); /* ERR_UNIMPLEMENTED on plugins without it */

typedef struct ClientCompileOpts {
  int replicas, partitions; /* 0 means 1; process p runs on device p, in a job see client_share */
  bool alone;               /* in a job: on devices of this process only */
  /* By argument and by result: may the compiler choose its sharding, as JAX lets it where the program
   * has none? n 0: none may. */
  const bool *free_args, *free_results;
  int n_args, n_results;
} ClientCompileOpts;

/* program: StableHLO text or portable bytecode. opts may be NULL. */
Err *client_compile(Client *c, Str program, const ClientCompileOpts *opts, ClientProgram **out);
void client_program_free(ClientProgram *p);
int client_program_outputs(const ClientProgram *p);   /* of each process */
int client_program_processes(const ClientProgram *p); /* replicas x partitions */

/* What the compiler says; -1 where the plugin does not know. */
typedef struct ClientStats {
  int64_t code_bytes, argument_bytes, output_bytes, alias_bytes, temp_bytes, peak_bytes;
  double flops, transcendentals, bytes_accessed, optimal_s;
} ClientStats;
void client_program_stats(const ClientProgram *p, ClientStats *out);

/* Compiles for a topology without devices ("v5e:2x2" for libtpu) and reports; nothing can be run.
 * `plugin` as above. */
Err *client_compile_only(const char *plugin, const char *topology, Str program,
                         const ClientCompileOpts *opts, ClientStats *out, char **out_platform);

/* Copies `data` to a device before returning. */
Err *client_buffer_from_host(Client *c, int device, DType type, int rank, const int64_t *dims,
                             const void *data, ClientBuffer **out);
void client_buffer_free(ClientBuffer *b); /* NULL is fine */
DType client_buffer_type(const ClientBuffer *b);
/* *dims lives as long as the buffer. Waits for nothing. */
Err *client_buffer_dims(const ClientBuffer *b, int *rank, const int64_t **dims);
/* Waits for the data and copies it; `n` must be its size in bytes. */
Err *client_buffer_to_host(ClientBuffer *b, void *dst, size_t n);
Err *client_buffer_wait(ClientBuffer *b);

/* args[p * n_args + i], outs[p * n_outputs + j] for process p of those on devices of this job's process.
 * Arguments that the program donates
 * (tf.aliasing_output, jax.buffer_donor) are gone afterwards: free their handles all the same.
 * Returns when the run is enqueued; errors of the run itself may come here or from
 * client_buffer_wait / to_host of its outputs. */
Err *client_execute(ClientProgram *p, ClientBuffer *const *args, int n_args, ClientBuffer **outs);

/* ---- recordings: the profiler extension, where the plugin has it ---- */

typedef struct ClientProfile ClientProfile;
/* One at a time. errors: ERR_UNIMPLEMENTED on plugins without a profiler */
Err *client_profile_start(Client *c, ClientProfile **out);
/* Ends the recording; *out_xspace (buf_free) is an XSpace (prof/prof.h), empty when nothing ran. */
Err *client_profile_stop(ClientProfile *take, Buf *out_xspace);

#endif
