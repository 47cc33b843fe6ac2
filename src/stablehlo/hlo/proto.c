/* HLO modules as protos: an HloModuleProto, or one inside an HloProto or HloSnapshot, as XLA dumps them. */
#include "base/pb.h"
#include "stablehlo/hlo/hlo.h"

/* Fields of the messages around a module, and of the module, by which they are told apart. */
enum { PROTO_MODULE = 1, SNAPSHOT_HLO = 1, MODULE_COMPUTATIONS = 3, MODULE_ENTRY_ID = 6 };

/* Field `number` as a message; false: there is none, or the bytes are no message. */
static bool inside(Str bytes, int number, Str *out) {
  PbField f;
  bool found = false;
  Pb in = pb_read(bytes);
  while (pb_next(&in, &f)) {
    if (f.number <= 0) return false;
    if (f.number == number && f.type == 2 && !found) *out = f.bytes, found = true;
  }
  return found && !in.bad;
}

/* A module has computations, which are messages, and the number of the one to start with. */
static bool is_module(Str bytes) {
  PbField f;
  bool entry = false, computations = false;
  Pb in = pb_read(bytes);
  while (pb_next(&in, &f)) {
    entry |= f.number == MODULE_ENTRY_ID && f.type == 0;
    computations |= f.number == MODULE_COMPUTATIONS && f.type == 2;
  }
  return !in.bad && computations && entry;
}

/* The module's own bytes, out of what is around it. */
static bool find_module(Str bytes, Str *out) {
  *out = bytes;
  for (int level = 0; level < 3; level++) {
    if (is_module(*out)) return true;
    if (!inside(*out, level ? SNAPSHOT_HLO : PROTO_MODULE, out)) return false;
  }
  return false;
}

bool hlo_is_proto(Str bytes) {
  Str module;
  return bytes.n && find_module(bytes, &module);
}

static void *from_arena(void *a, size_t n) { return arena_alloc(a, n); }
static void to_arena(void *a, void *p) { (void)a, (void)p; }

Err *hlo_read_proto(Arena *a, Str bytes, HloFile *out) {
  Str module;
  if (!find_module(bytes, &module)) return err_new(ERR_INVALID, "no HloModuleProto");
  ProtobufCAllocator in = {from_arena, to_arena, a};
  *out = (HloFile){.module = hlo__module__unpack(&in, module.n, (const uint8_t *)module.p)};
  return out->module ? NULL : err_new(ERR_INVALID, "a damaged HloModuleProto");
}
