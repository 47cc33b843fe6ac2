/* prof/xspace, private: the field numbers and stat names of XSpace that the writer and the reader
 * share. The message is the one of TensorFlow's xplane.proto, which xprof reads:
 *   XSpace 1 planes, 4 hostnames        XPlane 1 id, 2 name, 3 lines, 4 events, 5 stats' names, 6
 * stats XLine 1 id, 2 name, 3 timestamp_ns, 4 events, 11 display_name XEvent 1 metadata, 2
 * offset_ps, 3 duration_ps, 4 stats XStat 1 metadata, 2 double, 3 uint64, 4 int64, 5 string, 6
 * bytes, 7 reference XEventMetadata 1 id, 2 name, 4 display_name, 5 stats      XStatMetadata 1 id,
 * 2 name */
#ifndef WEFT_PROF_XSPACE_H
#define WEFT_PROF_XSPACE_H

typedef enum XStatId {
  XS_NONE,
#define X(id, name) XS_##id,
#include "prof/xstats.def"
#undef X
  XS_COUNT
} XStatId;
extern const char *const xstat_names[XS_COUNT];

#define XLINE_STEPS "Steps"
#define XLINE_MODULES "XLA Modules"
#define XLINE_OPS "XLA Ops"
#define XPLANE_HOST "/host:CPU"
#define XPLANE_RUNTIME "/host:TPU-runtime"
#define XPLANE_METADATA "/host:metadata"
#define XPLANE_OWN "/weft" /* lives of buffers, and the two clocks */
#define XLINE_LIVES "lives of program "
#define XLINE_MEMORY "device memory"
#define XLINE_CLOCK "clock"
#define XLINE_HOST "host: " /* of a device plane: what the host did, on the device's axis */

#endif
