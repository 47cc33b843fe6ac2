/* prof/xspace, private: the field numbers and stat names of XSpace that the writer and the reader
 * share. The message is the one of TensorFlow's xplane.proto, which xprof reads:
 *   XSpace 1 planes, 4 hostnames        XPlane 1 id, 2 name, 3 lines, 4 events, 5 stats' names, 6
 * stats XLine 1 id, 2 name, 3 timestamp_ns, 4 events, 11 display_name XEvent 1 metadata, 2
 * offset_ps, 3 duration_ps, 4 stats XStat 1 metadata, 2 double, 3 uint64, 4 int64, 5 string, 6
 * bytes, 7 reference XEventMetadata 1 id, 2 name, 4 display_name, 5 stats      XStatMetadata 1 id,
 * 2 name */
#ifndef WEFT_PROF_XSPACE_H
#define WEFT_PROF_XSPACE_H

/* X(id, name): the first block is what xprof looks for, the second is our own. */
#define XSTATS(X)                                                                                  \
  X(DEVICE_TYPE, "device_type_string")                                                             \
  X(PEAK_TERAFLOPS, "peak_teraflops_per_second")                                                   \
  X(PEAK_BANDWIDTH, "peak_hbm_bw_gigabytes_per_second")                                            \
  X(GROUP_ID, "group_id")                                                                          \
  X(STEP_NUM, "step_num") X(RUN_ID, "run_id") X(PROGRAM_ID, "program_id") X(                       \
      SYMBOL_ID, "symbol_id") X(CATEGORY, "hlo_category") X(FLOPS, "flops")                        \
      X(MODEL_FLOPS, "model_flops") X(BYTES, "bytes_accessed") X(TF_OP, "tf_op") X(                \
          SOURCE, "source") X(OCCURRENCES, "occurrences") X(BYTES_ALLOCATED, "bytes_allocated")    \
          X(BYTES_AVAILABLE, "bytes_available") X(PEAK_BYTES, "peak_bytes_in_use") X(              \
              FRAGMENTATION, "fragmentation") X(ALLOCATOR, "allocator_name") X(ALLOC_BYTES,        \
                                                                               "allocation_bytes") \
              X(REQUESTED, "requested_bytes") X(ADDRESS, "address") X(TF_OP_NAME, "tf_op_name")    \
                  X(REGION, "region_type") X(DATA_TYPE, "data_type") X(SHAPE, "shape") X(          \
                      TITLE, "weft_title") X(KIND, "weft_kind") X(VIRTUAL, "weft_virtual")         \
                      X(MEMORY, "weft_memory_bytes") X(LINK, "weft_link_bytes_per_s") X(           \
                          OP, "weft_op") X(BOUND, "weft_bound") X(UTILISATION, "weft_utilisation") \
                          X(SHAPES, "weft_shapes") X(MODELLED, "weft_modelled")                    \
                              X(COLLECTIVE, "weft_collective") X(PROGRAM_FLOPS, "weft_flops")      \
                                  X(PROGRAM_PEAK, "weft_peak_bytes") X(INPUT_S, "weft_input_s")    \
                                      X(TRANSFER_S, "weft_transfer_s") X(ROLE, "weft_role")        \
                                          X(TYPE, "weft_type") X(LIFE_BYTES, "weft_bytes")         \
                                              X(ON_CHIP, "weft_on_chip") X(REAL_S, "weft_real_s")

typedef enum XStatId {
  XS_NONE,
#define X(id, name) XS_##id,
  XSTATS(X)
#undef X
      XS_COUNT
} XStatId;
extern const char *const xstat_names[XS_COUNT];

#define XLINE_STEPS "Steps"
#define XLINE_MODULES "XLA Modules"
#define XLINE_OPS "XLA Ops"
#define XPLANE_HOST "/host:CPU"
#define XPLANE_OWN "/weft" /* lives of buffers, and the two clocks */
#define XLINE_LIVES "lives of program "
#define XLINE_CLOCK "clock"

#endif
