/* What a chip's compiler made of a program, on stderr.
 *
 * WEFT_DUMP=why: each decision with the rule that it comes from, in the order in which they are taken:
 *
 *   why: stored     exponential_7 f32[16,64] net.py:12: shared_gate
 *
 * WEFT_DUMP=kernels: the kernels of a chip's program in schedule order, one a line on stderr, as they
 * are timed:
 *
 *   1847 x1 product w1 (start 1024 reads 270 writes 0 vector 320 array 512) | bf16[64,256]{1,0}V <- bf16[64,128]{1,0}V f32[128,256]{1,0}p | dot add tanh
 *
 * The cycles that the device's compiler would estimate (- where it does not), how often it runs, its
 * kind and windows; of a TPU's kernel what starting, transfers, vector unit and array take of them, each as if nothing hid behind
 * anything; what it writes, with layouts from minor to major and where it lies (V, C on chip,
 * s scalar memory, else device memory; ~ stored in bf16, p an argument, ! never written); what it
 * reads; what is computed inside. */
#include <stdio.h>

#include "sim/schedule/schedule.h"

static void print_value(Buf *b, const HValue *v) {
  static const char *const spaces[] = {"", "V", "C", "s"};
  const HNode *n = v->node;
  buf_printf(b, " %s%s[", v->rounded ? "~" : "", dtype_name(n->dt));
  for (int i = 0; i < n->rank; i++) buf_printf(b, "%s%lld", i ? "," : "", (long long)n->d[i]);
  buf_cstr(b, "]{");
  for (int i = 0; i < n->rank; i++) buf_printf(b, "%s%d", i ? "," : "", v->order[i]);
  while (v->alias) v = v->alias;
  buf_printf(b, "}%s%s%s", spaces[v->space], v->is_param ? "p" : "", v->dropped ? "!" : "");
}

void sched_why(const HNode *n, const char *what, const char *rule) {
  if (!env_lists("WEFT_DUMP", "why")) return;
  Buf b = {0};
  const char *name = op_info[n->op].name, *dot = strchr(name, '.');
  buf_printf(&b, "why: %-10s %s_%d %s[", what, dot ? dot + 1 : name, n->id, dtype_name(n->dt));
  for (int i = 0; i < n->rank; i++) buf_printf(&b, "%s%lld", i ? "," : "", (long long)n->d[i]);
  buf_cstr(&b, "]");
  if (n->src && n->src->loc) buf_byte(&b, ' '), loc_print(&b, n->src->loc);
  buf_printf(&b, ": %s\n", rule);
  fputs(b.p, stderr);
  buf_free(&b);
}

static const char *kind(const Kernel *k) {
  return k->conv     ? "product"
         : k->copy   ? "copy"
         : k->pool   ? "pool"
         : k->reduce ? "reduction"
         : k->alone  ? "operation"
                     : "loop";
}

void sched_dump(const Schedule *p, const Kernel *k) {
  if (!env_lists("WEFT_DUMP", "kernels")) return;
  Buf b = {0};
  if (k->costed) buf_printf(&b, "%.0f", k->est);
  else buf_cstr(&b, "-");
  buf_printf(&b, " x%.0f %s w%d", p->mult, kind(k), k->windows);
  if (k->parts.start > 0)
    buf_printf(&b, " (start %.0f reads %.0f writes %.0f vector %.0f array %.0f)", k->parts.start,
               k->parts.reads, k->parts.writes, k->parts.vector, k->parts.array);
  buf_cstr(&b, " |");
  for (int i = 0; i < k->roots.n; i++)
    if (k->roots.v[i]->val) print_value(&b, k->roots.v[i]->val);
  buf_cstr(&b, " <-");
  for (int i = 0; i < k->reads.n; i++) print_value(&b, k->reads.v[i]);
  buf_cstr(&b, " |");
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    const char *name = op_info[n->op].name, *dot = strchr(name, '.');
    if (n->kind == H_CONV) name = n->conv->is_conv ? "convolution" : "dot", dot = NULL;
    buf_printf(&b, " %s", dot ? dot + 1 : name);
  }
  buf_cstr(&b, "\n");
  fputs(b.p, stderr);
  buf_free(&b);
}
