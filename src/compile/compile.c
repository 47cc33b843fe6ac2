/* The whole compiler on one screen, and its dumps. */
#include "compile/compile.h"
#include "compile/pass/pass.h"

#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
static const struct {
  const char *name;
  Err *(*run)(Module *m);
} passes[] = {
    /* one function, and few kinds of operation */
    {"inline", pass_inline},
    {"batch_norm", pass_batch_norm},
    /* what front ends write out, while it stands as they wrote it */
    {"reflect_pad", pass_reflect_pad},
    {"ragged", pass_ragged},
    {"ragged_dot", pass_ragged_dot},
    {"resample", pass_resample},
    /* forms that kernels have; layouts first, of which all products that follow are made */
    {"layout_assignment", pass_layout_assignment},
    {"windows", pass_windows},
    {"algorithms", pass_algorithms},
    {"small_types", pass_small_types},
    {"lower_complex", pass_lower_complex},
    {"products", pass_products},
    {"groups", pass_groups},
    {"repeats", pass_repeats},
    {"tiny_products", pass_tiny_products},
    {"bytes", pass_bytes},
    /* larger patterns, before simplify merges their parts with others' */
    {"special", pass_special},
    {"attention", NULL}, /* as the device has it */
    {"causal_blocks", pass_causal_blocks},
    {"segment_sum", pass_segment_sum},
    /* equal values are one, constants are folded: what small patterns are found in */
    {"simplify", pass_simplify},
    {"threefry", pass_threefry},
    {"narrow", pass_narrow},
    {"pads", pass_pads},
    {"sink_concat", pass_sink_concat},
    {"pools", pass_pools},
    {"interior_pad", pass_interior_pad},
    {"scatters", pass_scatters},
    {"updates", pass_updates},
    {"masks", pass_masks},
    {"rng_rounding", pass_rng_rounding},
    /* loops: first those that go away, then those that are made */
    {"unroll", pass_unroll},
    {"threefry", pass_threefry}, /* whose rounds JAX wrote as a loop: lowered for "cpu" */
    {"hoist", pass_hoist},
    {"blockwise", pass_blockwise},
    {"unseen", pass_unseen},
};
/* clang-format on */

/* What else WEFT_DUMP prints: of plans here, of code in dev/cpu/loops, of chips in sim/schedule/dump.c. */
static const char *const other_dumps[] = {"fuse", "plan", "llvm", "kernels", "why"};

/* A stage that does not exist prints nothing: its name is probably a slip. */
static void check_dump(void) {
  const char *want = env_get("WEFT_DUMP");
  for (size_t n; want && *want; want += n + (want[n] == ',')) {
    Str s = {want, n = strcspn(want, ",")};
    bool ok = false;
    for (int i = 0; i < COUNT_OF(other_dumps); i++) ok |= str_is(s, other_dumps[i]);
    for (int i = 0; i < COUNT_OF(passes); i++) ok |= str_is(s, passes[i].name);
    if (ok) continue;
    Buf names = {0};
    for (int i = 0; i < COUNT_OF(passes); i++) buf_printf(&names, "%s, ", passes[i].name);
    for (int i = 0; i < COUNT_OF(other_dumps); i++)
      buf_printf(&names, "%s%s", i ? ", " : "", other_dumps[i]);
    env_complain("WEFT_DUMP", "names no stage '%.*s': there are %s", STR_ARG(s), names.p);
    buf_free(&names);
  }
}

static void print_region(Buf *b, const Region *r, int depth);

static void print_op(Buf *b, const Op *op, int depth) {
  buf_printf(b, "%*s", 2 * depth, "");
  for (int i = 0; i < op->n_results; i++) buf_printf(b, "%s%%%d", i ? ", " : "", op->results[i].id);
  Str name = op_full_name(op);
  buf_printf(b, "%s%.*s(", op->n_results ? " = " : "", STR_ARG(name));
  for (int i = 0; i < op->n_operands; i++)
    buf_printf(b, "%s%%%d", i ? ", " : "", op->operands[i]->id);
  buf_cstr(b, ")");
  for (int i = 0; i < op->n_attrs; i++) {
    const int64_t *v;
    int n = op_ints(op, op->attrs[i].name.p, &v);
    buf_printf(b, " %.*s", STR_ARG(op->attrs[i].name));
    for (int k = 0; k < n && k < 16; k++) buf_printf(b, "%c%lld", k ? ',' : '=', (long long)v[k]);
  }
  buf_cstr(b, " : ");
  for (int i = 0; i < op->n_results; i++) {
    if (i) buf_cstr(b, ", ");
    type_print(b, op->results[i].type);
  }
  buf_cstr(b, "\n");
  for (int i = 0; i < op->n_regions; i++) print_region(b, op->regions[i], depth + 1);
}

static void print_region(Buf *b, const Region *r, int depth) {
  buf_printf(b, "%*s{", 2 * depth, "");
  for (int i = 0; i < r->n_args; i++) {
    buf_printf(b, "%s%%%d: ", i ? ", " : " ", r->args[i]->id);
    type_print(b, r->args[i]->type);
  }
  buf_cstr(b, "\n");
  for (const Op *op = r->first; op; op = op->next) print_op(b, op, depth + 1);
  buf_printf(b, "%*s}\n", 2 * depth, "");
}

static void dump_module(const char *stage, Module *m) {
  if (!env_lists("WEFT_DUMP", stage)) return;
  Buf b = {0};
  Func *f = module_main(m);
  ir_number(f);
  buf_printf(&b, "// ---- after %s\n", stage);
  print_region(&b, f->body, 0);
  fputs(b.p, stderr);
  buf_free(&b);
}

Err *compile_program(const Module *m, const Target *t, Plan **out) {
  check_dump();
  Module *own = module_clone(m);
  Err *e = NULL;
  for (int i = 0; i < COUNT_OF(passes) && !e; i++) {
    e = passes[i].run ? passes[i].run(own) : pass_attention(own, t->attends, t->arg);
    if (!e) dump_module(passes[i].name, own);
  }
  if (!e) e = plan_build(own, t, out);
  if (e) {
    module_free(own);
    return e;
  }
  if (env_lists("WEFT_DUMP", "plan") || env_lists("WEFT_DUMP", "fuse")) {
    Buf b = {0};
    plan_print(&b, *out);
    fputs(b.p, stderr);
    buf_free(&b);
  }
  return NULL;
}
