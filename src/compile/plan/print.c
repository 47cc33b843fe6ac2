/* Plans as text, for WEFT_DUMP and tests. */
#include "compile/plan/plan.h"
#include "compile/pass/query.h"

static void print_places(Buf *b, const Plan *p, const int *v, int n) {
  for (int i = 0; i < n; i++) {
    static const char *const kinds[] = {"none", "@", "arg", "result", "const", "view of place "};
    if (v[i] < 0) {
      buf_cstr(b, " -");
      continue;
    }
    const Place *q = &p->places[v[i]];
    long long at = q->kind == PLACE_ARENA ? (long long)q->offset : q->index;
    buf_printf(b, " %s%lld%s", kinds[q->kind], at, q->owners ? "*" : "");
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
