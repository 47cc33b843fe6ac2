/* The whole compiler on one screen, and its dumps. */
#include "compile/compile_priv.h"
#include "compile/pass/pass.h"

#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
static const struct {
  const char *name;
  Err *(*run)(Module *m);
} passes[] = {
    {"inline", pass_inline},
    {"windows", pass_windows},
    {"pairs", pass_pairs},
    {"products", pass_products},
    {"groups", pass_groups},
    {"repeats", pass_repeats},
    {"tiny_products", pass_tiny_products},
    {"special", pass_special},
    {"simplify", pass_simplify},
    {"pads", pass_pads},
    {"apart", pass_apart},
    {"pools", pass_pools},
    {"spread", pass_spread},
    {"scatters", pass_scatters},
    {"masks", pass_masks},
    {"unroll", pass_unroll},
    {"hoist", pass_hoist},
};
/* clang-format on */

/* A stage that does not exist prints nothing: its name is probably a slip. */
static void check_dump(void) {
  const char *want = env_get("WEFT_DUMP");
  for (size_t n; want && *want; want += n + (want[n] == ',')) {
    Str s = {want, n = strcspn(want, ",")};
    bool ok = str_is(s, "fuse") || str_is(s, "plan") || str_is(s, "llvm") || str_is(s, "kernels");
    for (int i = 0; i < COUNT_OF(passes); i++) ok |= str_is(s, passes[i].name);
    if (ok) continue;
    Buf names = {0};
    for (int i = 0; i < COUNT_OF(passes); i++) buf_printf(&names, "%s, ", passes[i].name);
    env_complain("WEFT_DUMP", "names no stage '%.*s': there are %splan, llvm, kernels", STR_ARG(s),
                 names.p);
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

/* ---- plans as text ---- */

static void print_places(Buf *b, const Plan *p, const int *v, int n) {
  for (int i = 0; i < n; i++) {
    static const char *const kinds[] = {"none", "@", "arg", "result", "const", "view of place "};
    if (v[i] < 0) {
      buf_cstr(b, " -");
      continue;
    }
    const Place *q = &p->places[v[i]];
    long long at = q->kind == PLACE_ARENA ? (long long)q->offset : q->index;
    buf_printf(b, " %s%lld%s", kinds[q->kind], at, q->each ? "*" : "");
  }
}

static void print_block(Buf *b, const Plan *p, const Block *blk, int depth) {
  for (int i = 0; i < blk->n; i++) {
    const Step *s = &blk->steps[i];
    static const char *const kinds[] = {"op",         "fused", "while", "case", "copy",
                                        "collective", "cut",   "join",  "view"};
    buf_printf(b, "%*s%d %s", 2 * depth, "", s->pos, kinds[s->kind]);
    if (s->kind == STEP_FUSED) {
      static const char *const shapes[] = {"loop", "row", "split"};
      buf_printf(b, " %s [", shapes[s->fusion->kind]);
      for (int k = 0; k < s->fusion->dom.n; k++)
        buf_printf(b, "%s%lld%s", k ? " " : "", (long long)s->fusion->dom.dims[k],
                   s->fusion->dom.reduced[k] ? "r" : "");
      buf_cstr(b, "] {");
      for (int k = 0; k < s->fusion->n_ops; k++) {
        Str name = op_full_name(s->fusion->ops[k]);
        const char *dot = memchr(name.p, '.', name.n);
        int skip = dot ? (int)(dot - name.p) + 1 : 0;
        buf_printf(b, "%s%.*s", k ? " " : "", (int)name.n - skip, name.p + skip);
      }
      buf_cstr(b, "}");
    } else {
      Str name = op_full_name(s->op);
      buf_printf(b, " %.*s", STR_ARG(name));
    }
    buf_cstr(b, " (");
    print_places(b, p, s->in, s->n_in);
    buf_cstr(b, " ) ->");
    print_places(b, p, s->out, s->n_out);
    buf_cstr(b, "\n");
    for (int k = 0; k < s->n_blocks; k++) {
      buf_printf(b, "%*s[%d]\n", 2 * depth, "", k);
      print_block(b, p, &s->blocks[k], depth + 1);
      for (int j = 0; j < s->blocks[k].n_results; j++) {
        if (s->blocks[k].from[j] == s->blocks[k].to[j]) continue;
        buf_printf(b, "%*smove", 2 * depth + 2, "");
        print_places(b, p, &s->blocks[k].from[j], 1);
        buf_cstr(b, " ->");
        print_places(b, p, &s->blocks[k].to[j], 1);
        buf_cstr(b, "\n");
      }
    }
  }
}

void plan_print(Buf *b, const Plan *p) {
  buf_printf(b, "// ---- plan: %d steps, arena %lld bytes, each process %lld bytes\n", p->n_steps,
             (long long)p->arena_bytes, (long long)p->arena_each_bytes);
  print_block(b, p, &p->body, 0);
  for (int j = 0; j < p->n_results; j++) {
    buf_printf(b, "result %d:", j);
    print_places(b, p, &p->results[j].place, 1);
    if (p->results[j].reuse_arg >= 0) buf_printf(b, " in arg%d", p->results[j].reuse_arg);
    buf_cstr(b, "\n");
  }
}

Err *compile_program(const Module *m, const Target *t, Plan **out) {
  check_dump();
  Module *own = module_clone(m);
  Err *e = NULL;
  for (int i = 0; i < COUNT_OF(passes) && !e; i++) {
    e = passes[i].run(own);
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
