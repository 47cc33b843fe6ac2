/* The arithmetic of dense linear algebra, by the counts of textbooks (Golub and Van Loan, "Matrix Computations"). */
#include "sim/hlo/linalg.h"

#include <stdlib.h>

static const struct {
  const char *name; /* anywhere in a custom call's target */
  LinalgKind kind;
} routines[] = {
    {"potrf", LINALG_CHOLESKY}, {"trsm", LINALG_SOLVE},   {"getrf", LINALG_LU},
    {"geqrf", LINALG_QR},       {"geqp3", LINALG_QR},     {"orgqr", LINALG_Q},
    {"ungqr", LINALG_Q},        {"ormqr", LINALG_Q},      {"unmqr", LINALG_Q},
    {"syevd", LINALG_EIGH},     {"syevj", LINALG_EIGH},   {"heevd", LINALG_EIGH},
    {"gesdd", LINALG_SVD},      {"gesvd", LINALG_SVD},    {"geev", LINALG_EIG},
    {"gees", LINALG_EIG},       {"gehrd", LINALG_REDUCE}, {"sytrd", LINALG_REDUCE},
    {"hetrd", LINALG_REDUCE},   {"gtsv", LINALG_BANDED},  {"tridiagonal_solve", LINALG_BANDED},
};
static const struct {
  const char *name; /* the whole target */
  LinalgKind kind;
} targets[] = {
    {"Qr", LINALG_QR},
    {"LuDecomposition", LINALG_LU},
    {"Eigh", LINALG_EIGH},
    {"ProductOfElementaryHouseholderReflectors", LINALG_Q},
};

static bool kind_of(const HNode *n, LinalgKind *kind) {
  if (n->op == OP_CHOLESKY) return *kind = LINALG_CHOLESKY, true;
  if (n->op == OP_TRIANGULAR_SOLVE) return *kind = LINALG_SOLVE, true;
  if (n->op != OP_CUSTOM_CALL || !n->src) return false;
  Str target = op_str(n->src, "call_target_name");
  for (int i = 0; i < COUNT_OF(targets); i++)
    if (str_is(target, targets[i].name)) return *kind = targets[i].kind, true;
  char text[128];
  size_t size = MIN(target.n, sizeof text - 1);
  memcpy(text, target.p ? target.p : "", size);
  text[size] = 0;
  for (int i = 0; i < COUNT_OF(routines); i++)
    if (strstr(text, routines[i].name)) return *kind = routines[i].kind, true;
  return false;
}

/* Are vectors asked for beside values? LAPACK's mode says 'N' where they are not; else it shows in the results. */
static bool vectors(const HNode *n) {
  static const char *const places[] = {"backend_config", "mhlo.backend_config"};
  const Attr *mode = n->src ? op_attr(n->src, "mode") : NULL;
  for (int i = 0; i < COUNT_OF(places) && n->src && !mode; i++) {
    const Attr *config = op_attr(n->src, places[i]);
    if (config && config->kind == AT_DICT) mode = attrs_get(config->dict, config->n, "mode");
  }
  if (mode && mode->kind == AT_INT) return mode->i != 'N';
  int matrices = 0;
  for (int i = 0; i < n->n_results && n->n_results > 1; i++)
    matrices += n->res_rank[i] >= 2 && n->res_d[i][n->res_rank[i] - 1] > 1 &&
                n->res_d[i][n->res_rank[i] - 2] > 1;
  return n->n_results <= 1 || matrices > 0;
}

/* Operations on one real matrix. m: the longer side, k: the shorter one. */
static double operations(const Linalg *a, double m, double k, bool all) {
  switch (a->kind) {
  case LINALG_CHOLESKY: return k * k * k / 3;
  case LINALG_SOLVE: return k * k * a->right;
  case LINALG_LU: return k * k * (m - k / 3);
  case LINALG_QR: return 2 * k * k * (m - k / 3);
  case LINALG_Q: return a->right > 0 ? 2 * k * a->right * (2 * m - k) : 2 * k * k * (m - k / 3);
  case LINALG_EIGH: return all ? 9 * k * k * k : 4.0 / 3 * k * k * k;
  case LINALG_SVD:
    return all ? 6 * m * k * k + 11 * k * k * k : 4 * m * k * k - 4.0 / 3 * k * k * k;
  case LINALG_EIG: return (all ? 25 : 10) * k * k * k;
  case LINALG_REDUCE: return 10.0 / 3 * k * k * k;
  case LINALG_BANDED: return 8 * m * MAX(1, a->right);
  }
  return 0;
}

/* Elements that products with one vector read: all that is left of the matrix, once a column (tridiagonal), or twice. */
static double read_by_columns(LinalgKind kind, double m, double k) {
  switch (kind) {
  case LINALG_EIGH: return k * k * k / 3;
  case LINALG_SVD: return k * k * (m - k / 3);
  case LINALG_EIG:
  case LINALG_REDUCE: return 2 * k * k * k / 3;
  default: return 0;
  }
}

bool hlo_linalg(const HNode *n, Linalg *out) {
  LinalgKind kind;
  if (n->n_in < 1 || !kind_of(n, &kind)) return false;
  const HNode *x = n->in[kind == LINALG_BANDED ? n->n_in - 1 : 0];
  if (x->rank < 2 || hlo_count(x) == 0) return false;
  *out = (Linalg){.kind = kind, .type = x->dt, .batch = 1};
  for (int i = 0; i < x->rank - 2; i++) out->batch *= (double)x->d[i];
  out->rows = (double)x->d[x->rank - 2], out->cols = (double)x->d[x->rank - 1];
  double m = MAX(out->rows, out->cols), k = MIN(out->rows, out->cols);
  bool beside = kind == LINALG_SOLVE || (kind == LINALG_Q && n->n_in > 2);
  if (beside) out->right = (double)hlo_count(n->in[n->n_in - 1]) / (out->batch * m);
  if (kind == LINALG_BANDED) m = out->rows, out->right = out->cols;
  bool complex = dtype_is_complex(x->dt);
  out->flops = out->batch * operations(out, m, k, vectors(n)) * (complex ? 4 : 1);
  out->chain = kind == LINALG_BANDED ? m : k;
  out->streamed = read_by_columns(kind, m, k) * hlo_bits(x->dt) / 8;
  return true;
}

/* ---- custom calls ---------------------------------------------------------------------------- */

static double number_after(const char *from, const char *end, const char *key) {
  const char *at = strstr(from, key);
  if (!at || at >= end) return 0;
  at = strchr(at + strlen(key), ':');
  double v = at && at < end ? strtod(at + 1, NULL) : 0;
  return v > 0 && v < 1e30 ? v : 0;
}

bool hlo_call_cost(const HNode *n, CallCost *out) {
  if (n->op != OP_CUSTOM_CALL || !n->src) return false;
  Str config = op_str(n->src, "backend_config");
  if (!config.n) return false;
  char *text = xstrndup(config.p, config.n);
  const char *at = strstr(text, "\"cost_estimate\""), *end = at ? strchr(at, '}') : NULL;
  if (end)
    *out =
        (CallCost){number_after(at, end, "\"flops\""), number_after(at, end, "\"bytes_accessed\""),
                   number_after(at, end, "\"transcendentals\"")};
  free(text);
  return end && (out->flops > 0 || out->bytes > 0);
}

bool hlo_unknown_call(const HNode *n) {
  /* these move bytes, sort, or do nothing that takes time */
  static const char *const known[] = {"Sharding",
                                      "SPMDFullToShardShape",
                                      "SPMDShardToFullShape",
                                      "LayoutConstraint",
                                      "TopK",
                                      "mhlo.topk",
                                      "chlo.top_k",
                                      "stablehlo.dynamic_top_k",
                                      "ApproxTopK",
                                      "PartialReduce",
                                      "shape_assertion",
                                      "annotate_device_placement",
                                      "MoveToHost",
                                      "MoveToDevice",
                                      "Nop",
                                      "control_dep",
                                      "InspectSharding",
                                      "AssumeGatherIndicesInBound"};
  Linalg linalg;
  CallCost cost;
  if (n->kind != H_OTHER || n->op != OP_CUSTOM_CALL || !n->src) return false;
  Str target = op_str(n->src, "call_target_name");
  for (int i = 0; i < COUNT_OF(known); i++)
    if (str_is(target, known[i])) return false;
  return !hlo_linalg(n, &linalg) && !hlo_call_cost(n, &cost);
}
