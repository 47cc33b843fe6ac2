/* What a GPU's vector units need for the operations of a loop, a reduction, a window or a sort, beside the
 * bytes that it moves. Rates are numbers an SM finishes in a clock (data/chips/gpu.family): those of the
 * instructions around the arithmetic (addresses, loads, conversions), so that they carry over from the GPU on
 * which they were measured to others of these makers as they are. */
#include <math.h>

#include "sim/gpu/cost.h"
#include "sim/gpu/gpu.h"
#include "sim/hlo/query.h"

/* With fewer elements than an SM has threads, each takes one element instead of four. */
#define THREADS 2048
/* Longer rows, and columns, are summed in two steps; a block sums so many bytes side by side. */
#define ROW 16384
#define COLUMN_ROWS 4096
#define COLUMN_LINE 256
/* What lies in one row and is longer is sorted digit by digit: counting, then 8 of 32 bits a pass. */
#define RADIX 16384
#define RADIX_PASSES 5
/* Rows that a block sorts digit by digit are longer than this. */
#define DIGITS_ROW 1024
#define LONG_WINDOW 32
/* Numbers of a block of rows that share a mask, and rows that do at most: a thread holds 64 numbers of each array that is read,
 * so that few run beside each other. */
#define BLOCK 16384
#define SHARING 32
/* Bytes of a row whose words all lie in the same bank when tiles are turned. */
#define BANK_LINE 128

static double windows(const Chip *c, const HNode *n, double rate) {
  double taps = 1;
  bool scan = false;
  for (int i = 0; i < n->rank && n->lo; i++) {
    taps *= (double)n->lo[i];
    scan |= n->lo[i] > LONG_WINDOW && n->lo[i] == n->in[0]->d[i];
  }
  return (double)hlo_count(n) *
         (scan ? 1 / gpu_rate(c, "fit.loop_scanned") : taps / gpu_rate(c, "fit.loop_taps")) / rate;
}

/* Arrays that a kernel stores beside the sums of one as large. */
static int stores(const Kernel *k, const HNode *x) {
  int n = 0;
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *r = k->roots.v[i];
    n += r->val && !r->val->dropped && !r->val->alias && hlo_count(r) == hlo_count(x);
  }
  return n;
}

/* Sums along rows, or along columns: there neighbouring columns are a block's, so that few columns
 * leave SMs idle. What is long a framework sums by two kernels: twice (XLA does, too: reduction_splitter.c). */
static double sums(const Chip *c, const HNode *n, int stored, double sms, double clock,
                   bool *twice) {
  const HNode *x = n->in[0];
  int minor = x->rank - 1;
  while (minor > 0 && x->d[minor] == 1) minor--;
  double rows = 1;
  int last = -1;
  bool along = false;
  for (int i = 0; i < n->n_dims; i++) {
    rows *= (double)x->d[n->dims[i]];
    last = MAX(last, (int)n->dims[i]);
    along |= n->dims[i] == minor;
  }
  *twice = rows > (along ? ROW : COLUMN_ROWS);
  if (along) return hlo_bytes(x) / (gpu_rate(c, "fit.row_bytes") * sms * clock);
  double line = 1;
  for (int i = last + 1; i < x->rank; i++) line *= (double)x->d[i];
  double blocks = ceil(line * hlo_bits(x->dt) / 8 / COLUMN_LINE) * hlo_count(n) / MAX(1, line);
  if (*twice) blocks = sms;
  double clocks = MAX(1, n->n_results) / gpu_rate(c, "fit.column_sums") +
                  gpu_rate(c, "fit.column_stored") * stored;
  return (double)hlo_count(x) * clocks / (clock * MIN(sms, MAX(1, blocks)));
}

static double sorting(const Chip *c, const HNode *n, double sms, double clock, double bytes,
                      double bandwidth, double launch) {
  const HNode *x = n->in[0];
  double s = 0;
  int along =
      n->op == OP_SORT && n->src ? (int)op_int(n->src, "dimension", x->rank - 1) : x->rank - 1;
  double len = x->rank ? (double)x->d[along] : 1, rows = (double)hlo_count(x) / MAX(1, len);
  if (n->op == OP_CHLO_TOP_K) {
    double k = n->src ? (double)op_int(n->src, "k", 1) : 1, waves = ceil(rows / sms);
    if (!gpu_sorted(n))
      return len * MAX(gpu_rate(c, "fit.candidate") * k, gpu_rate(c, "fit.candidates") * k * k) *
             waves / clock;
    s = 3 * launch; /* counts, copies, cuts */
    if (len > DIGITS_ROW) return s + len * gpu_rate(c, "fit.sort_digits") * waves / clock;
  }
  if (rows < 2 && len > RADIX) return RADIX_PASSES * bytes / bandwidth;
  double steps = ceil(log2(MAX(2, len)));
  return s + rows * exp2(steps) * steps * (steps + 1) / 2 /
                 (gpu_rate(c, "fit.sort_steps") * sms * clock);
}

/* The arithmetic of one number, in operations of four clocks of a lane. A GPU shifts and combines bits
 * in half the instructions; sines are short where arguments are, powers are not. */
static double weight(const HNode *n) {
  switch (n->op) {
  case OP_SHIFT_LEFT:
  case OP_SHIFT_RIGHT_LOGICAL:
  case OP_OR:
  case OP_XOR:
  case OP_AND: return 0.45 * op_weight(n);
  case OP_SINE:
  case OP_COSINE: return 25;
  case OP_POWER: return hlo_const_only(n->in[1]) ? op_weight(n) : 75;
  default: return op_weight(n);
  }
}

/* Rows that share a mask of f32 which the kernel makes as it goes and spreads over n, as XLA gathers them in a block: as
 * many as a power of two divides, of several dimensions where the inner one is whole. 0: no such mask. */
static double sharing(const HNode *n) {
  const HNode *x = n->kind == H_BCAST && n->n_in ? n->in[0] : NULL;
  if (!x || n->dt != DT_I1 || x->val || n->rank < 3 || !n->n_users || n->users[0]->dt != DT_F32)
    return 0;
  bool kept = false; /* the mask is the same for all rows of one dimension but not of all */
  double most = 0, all = 1;
  for (int i = n->rank - 2; i >= 0; i--) {
    bool spread = true;
    for (int k = 0; k < x->rank; k++) spread &= n->dims[k] != i;
    kept |= !spread;
    if (!spread) continue;
    int64_t part = n->d[i] & -n->d[i];
    most = MAX(most, all * (double)part);
    all = part < n->d[i] ? 1 : all * (double)part;
  }
  return kept ? MIN(most, SHARING) : 0;
}

/* A kernel that holds rows: each operation waits for the one before, in all threads of the row. */
static double rows(const Chip *c, const Kernel *k, double rate) {
  const HNode *sum = NULL;
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i]->kind == H_REDUCE) sum = k->inner.v[i];
  if (!sum || !hlo_count(sum->in[0])) return 0;
  double all = (double)hlo_count(sum->in[0]), count = MAX(1, (double)hlo_count(sum));
  double row = exp2(ceil(log2(MAX(1, all / count)))), held = gpu_rate(c, "fit.held_clocks"),
         clocks = held;
  bool shared = false;
  int ops = 0, read = 0;
  for (int i = 0; i < k->inner.n; i++) shared |= sharing(k->inner.v[i]) * row >= BLOCK;
  for (int i = 0; i < k->reads.n; i++) read += (double)hlo_count(k->reads.v[i]->node) == all;
  if (shared) clocks = (held + gpu_rate(c, "fit.held_shared") * BLOCK / row) * MAX(1, read);
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i], *x = n->kind == H_REDUCE ? n->in[0] : n;
    bool whole = (double)hlo_count(x) >= all && !hlo_const_only(x);
    ops += whole && (n->kind == H_REDUCE || n->kind == H_EWISE);
  }
  return count * row / 1024 * ops * clocks / rate;
}

/* Elements that a kernel turns so, those of its results that keep rows whole. */
static double banked(const Kernel *k) {
  bool arithmetic = false;
  double all = 0;
  for (int i = 0; i < k->inner.n; i++)
    arithmetic |= k->inner.v[i]->kind == H_EWISE && k->inner.v[i]->op != OP_CONVERT;
  for (int i = 0; i < k->roots.n && arithmetic; i++) {
    const HNode *n = k->roots.v[i];
    if (n->kind != H_TRANSPOSE || n->rank < 3 || n->dims[n->rank - 1] != n->rank - 1) continue;
    if ((double)n->d[n->rank - 1] * hlo_bits(n->dt) / 8 == BANK_LINE) all += (double)hlo_count(n);
  }
  return all;
}

double gpu_vector_s(const Schedule *p, const Kernel *k, double bytes, double bandwidth,
                    double *after) {
  const Chip *c = p->chip;
  bool eager = p->opts->eager; /* kernels of a framework: one result each */
  double sms = chip_num(c, "sms", 80) / c->devices_per_chip, clock = c->clock, s = 0, added = 0,
         launch = gpu_rate(c, "fit.launch");
  const HNode *root = k->roots.n ? k->roots.v[0] : NULL;
  if (k->rows) return rows(c, k, sms * clock);
  if (root && (root->kind == H_SORT || root->op == OP_CHLO_TOP_K))
    return sorting(c, root, sms, clock, bytes, bandwidth, launch);
  if (root && root->kind == H_SCATTER && root->n_in > 2) {
    double rate = gpu_rate(c, hlo_bits(root->dt) < 32 ? "fit.scatter_16" : "fit.scatter_32");
    return (double)hlo_count(root->in[2]) / (rate * sms * clock);
  }
  double ops = 0, written = 0;
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    ops += weight(n) * (double)hlo_count(n);
    if (n->kind == H_RWIN) s += windows(c, n, sms * clock);
    if (n->kind == H_SELSCAT) s += windows(c, n, sms * clock) / 4;
    if (n->kind != H_REDUCE) continue;
    bool twice;
    added = MAX(added, sums(c, n, eager ? 0 : stores(k, n->in[0]), sms, clock, &twice));
    *after += twice ? launch : 0;
  }
  for (int i = 0; i < k->roots.n; i++) {
    const HNode *n = k->roots.v[i];
    if (n->val && !n->val->dropped && !n->val->alias)
      written +=
          n->kind == H_DUS && n->n_in > 1 ? (double)hlo_count(n->in[1]) : (double)hlo_count(n);
  }
  double rate = gpu_rate(c, "fit.loop_elements") * sms * clock;
  bool turned = root && root->kind == H_TRANSPOSE && root->rank > 0 &&
                root->dims[root->rank - 1] != root->rank - 1;
  if (turned) rate *= gpu_rate(c, "fit.loop_turned");
  else if (root && root->kind == H_RESHAPE) rate = HUGE_VAL; /* a copy without addresses */
  else if (written < THREADS * sms) rate /= 4;
  double arithmetic = ops / (chip_num(c, "peak_fp32", 1e12) / c->devices_per_chip / 4);
  if (!eager) s = MAX(s, banked(k) / (gpu_rate(c, "fit.loop_banked") * sms * clock));
  return MAX(MAX(arithmetic, written / rate), MAX(s, added));
}
