/* The protobuf messages of the ABI: CompileOptionsProto in, DeviceAssignmentProto in and out. Unknown
 * fields are skipped. OpSharding out is in op_sharding.c. */
#include <ctype.h>

#include "base/pb.h"
#include "pjrt/pjrt_priv.h"

/* ---- compile options ---- */

/* Fields 1 replicas, 2 computations, 3 repeated computation {1 packed device ids}. */
static Err *assignment_parse(Str in, CompileOptions *o) {
  VEC(int) ids = {0};
  PbField f, g;
  bool bad_inner = false;
  int64_t replicas = 0, computations = 0;
  Pb message = pb_read(in);
  while (pb_next(&message, &f)) {
    if (f.number == 1 && f.type == 0) replicas = (int64_t)f.value;
    if (f.number == 2 && f.type == 0) computations = (int64_t)f.value;
    if (f.number != 3 || f.type != 2) continue;
    Pb c = pb_read(f.bytes);
    while (pb_next(&c, &g)) {
      if (g.number != 1) continue;
      uint64_t id;
      if (g.type == 0) *vec_push(&ids) = (int)g.value;
      else if (g.type == 2)
        while (g.bytes.n && pb_read_varint(&g.bytes, &id)) *vec_push(&ids) = (int)id;
    }
    bad_inner |= c.bad;
  }
  if (message.bad || bad_inner || replicas < 1 || computations < 1 || replicas > 1 << 20 ||
      computations > 1 << 20 || replicas * computations != ids.n) {
    vec_free(&ids);
    return err_new(ERR_INVALID, "the compile options hold a damaged device assignment");
  }
  o->n_assignment = ids.n;
  o->assignment = xcalloc((size_t)ids.n, sizeof(int));
  for (int c = 0; c < computations; c++) /* computation-major in the message */
    for (int r = 0; r < replicas; r++)
      o->assignment[r * computations + c] = ids.v[c * replicas + r];
  vec_free(&ids);
  return NULL;
}

/* ---- XLA's flags ---- */

static const char excess[] = "xla_allow_excess_precision";

/* As XLA reads them from the environment: the last one counts, with no value it is true. */
static bool allows_excess(const char *flags) {
  bool allows = true;
  for (const char *p = flags ? strstr(flags, excess) : NULL; p; p = strstr(p + 1, excess)) {
    const char *value = p + sizeof excess - 1;
    if (*value == '=') allows = strncmp(value + 1, "false", 5) != 0 && value[1] != '0';
    else if (!*value || isspace((unsigned char)*value)) allows = true;
  }
  return allows;
}

/* An OptionOverrideProto: 1 a string, 2 a boolean, 3 an integer. false: none of them, or no such string. */
static bool override_bool(Str value, bool *out) {
  PbField f = {0};
  Pb message = pb_read(value);
  if (!pb_next(&message, &f) || f.number < 1 || f.number > 3) return false;
  *out = f.number == 1 ? str_is(f.bytes, "true") || str_is(f.bytes, "True") || str_is(f.bytes, "1")
                       : f.value != 0;
  return f.number > 1 || *out || str_is(f.bytes, "false") || str_is(f.bytes, "False") ||
         str_is(f.bytes, "0");
}

/* An entry of env_option_overrides: 1 name, 2 value. Most of XLA's flags mean nothing here and are
 * accepted, as programs set them for other backends; other names are mistakes. */
static Err *take_override(CompileOptions *o, Str entry) {
  PbField f;
  Pb message = pb_read(entry);
  Str name = {0}, value = {0};
  while (pb_next(&message, &f)) {
    if (f.number == 1 && f.type == 2) name = f.bytes;
    if (f.number == 2 && f.type == 2) value = f.bytes;
  }
  if (name.n && !str_starts(name, "xla_"))
    return err_new(ERR_INVALID, "No such compile option: '%.*s'", STR_ARG(name));
  bool allows;
  if (!str_is(name, excess)) return NULL;
  if (!override_bool(value, &allows))
    return err_new(ERR_INVALID, "While setting option %s, the value is not a valid bool", excess);
  o->round_each = !allows;
  return NULL;
}

#define MOST_PROCESSES (1 << 24)

Err *compile_options_parse(Str bytes, CompileOptions *o) {
  *o = (CompileOptions){
      .replicas = 1, .partitions = 1, .round_each = !allows_excess(env_get("XLA_FLAGS"))};
  PbField top, f;
  bool bad_inner = false;
  Err *e = NULL;
  Pb message = pb_read(bytes);
  while (!e && pb_next(&message, &top)) {
    if (top.number == 7 && top.type == 2) e = take_override(o, top.bytes);
    if (top.number != 3 || top.type != 2) continue;
    Pb in = pb_read(top.bytes);
    while (!e && pb_next(&in, &f)) {
      int64_t v = (int64_t)f.value;
      switch (f.number) {
      case 4: o->replicas = v > 0 && v < 1 << 20 ? (int)v : 1; break;
      case 5: o->partitions = v > 0 && v < 1 << 20 ? (int)v : 1; break;
      case 6: o->spmd = v != 0; break;
      case 9:
        free(o->assignment);
        o->assignment = NULL, o->n_assignment = 0;
        if (f.type == 2) e = assignment_parse(f.bytes, o);
        break;
      case 12: /* bools, packed or not */
        if (f.type == 0) o->propagate_results |= v != 0;
        else
          for (size_t i = 0; i < f.bytes.n; i++) o->propagate_results |= f.bytes.p[i] != 0;
        break;
      case 19: o->shardy = v != 0; break;
      default: break;
      }
    }
    bad_inner |= in.bad;
  }
  if (!e && (message.bad || bad_inner)) e = err_new(ERR_INVALID, "the compile options are damaged");
  if (!e && (int64_t)o->replicas * o->partitions > MOST_PROCESSES)
    e = err_new(ERR_INVALID, "%d replicas x %d partitions are more than %d processes", o->replicas,
                o->partitions, MOST_PROCESSES);
  if (!e && o->n_assignment && o->n_assignment != o->replicas * o->partitions)
    e = err_new(ERR_INVALID,
                "the device assignment names %d devices for %d replicas x %d partitions",
                o->n_assignment, o->replicas, o->partitions);
  if (e) compile_options_clear(o);
  return e;
}

void compile_options_clear(CompileOptions *o) {
  free(o->assignment);
  o->assignment = NULL;
  o->n_assignment = 0;
}

void device_assignment_proto(Buf *out, int replicas, int partitions, const int *ids) {
  pb_int(out, 1, replicas);
  pb_int(out, 2, partitions);
  for (int c = 0; c < partitions; c++) {
    Buf one = {0};
    int64_t *row = xcalloc((size_t)replicas, sizeof *row);
    for (int r = 0; r < replicas; r++) row[r] = ids[r * partitions + c];
    pb_ints(&one, 1, replicas, row);
    pb_bytes(out, 3, &one);
    free(row);
    buf_free(&one);
  }
}
