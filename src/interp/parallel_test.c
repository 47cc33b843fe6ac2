/* Many processes: programs of eight devices against XLA (tests/parallel, see make.py there); the
 * grid of replicas and partitions, process groups, control flow that differs, programs that differ,
 * deadlocks; shardings as blocks. */
#include <math.h>
#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err_test.h"
#include "base/npy.h"
#include "interp/interp.h"
#include "stablehlo/stablehlo.h"

#include <stdlib.h>

#define FOLDER WEFT_SOURCE_DIR "/tests/parallel/"

static Tensor *ints(int rank, const int64_t *dims, const int32_t *v) {
  Tensor *t = tensor_make(DT_I32, rank, dims);
  if (v) memcpy(t->data, v, tensor_bytes(t));
  return t;
}
static Tensor *vec(int64_t n, const int32_t *v) { return ints(1, &n, v); }

/* ---- against XLA --------------------------------------------------------------------------- */

static void against_xla(void **state) {
  const char *name = *state;
  char *path = xasprintf(FOLDER "%s.mlir", name), *data = xasprintf(FOLDER "%s.npz", name);
  Buf b = {0};
  Module *m;
  Npz z;
  ok(file_read(path, &b));
  ok(stablehlo_read(path, (Str){b.p, b.n}, &m));
  ok(ir_verify(m));
  ok(npz_read(data, &z));
  const Func *f = module_main(m);
  int n_in = f->type->n_elems, n_out = f->type->n_results;
  Shards *args = xcalloc((size_t)n_in + 1, sizeof *args),
         *res = xcalloc((size_t)n_out + 1, sizeof *res);
  char key[16];
  for (int i = 0; i < n_in; i++) {
    snprintf(key, sizeof key, "in%d", i);
    const Npy *a = npz_find(&z, key);
    assert_non_null(a);
    args[i] = (Shards){1, xcalloc(1, sizeof(Tensor *))};
    args[i].t[0] = tensor_make(a->dtype, a->rank, a->dims);
    memcpy(args[i].t[0]->data, a->data, tensor_bytes(args[i].t[0]));
  }
  InterpOpts opts = {.replicas = 1, .partitions = 8};
  ok(interp_run(m, (Str){0}, &opts, args, n_in, res, n_out));
  for (int i = 0; i < n_out; i++) {
    snprintf(key, sizeof key, "out%d", i);
    const Npy *a = npz_find(&z, key);
    const Tensor *t = res[i].t[0];
    assert_int_equal(res[i].n, 1);
    assert_int_equal(t->count, a->count);
    for (int64_t k = 0; k < t->count; k++) {
      double got = elem_get_f64(t->dtype, tensor_at(t, k));
      double want = elem_get_f64(a->dtype, (char *)a->data + k * dtype_bytes(a->dtype));
      /* f32 sums of 128 products in another order: 2e-5 */
      if (!(fabs(got - want) <= 1e-6 + 2e-5 * fabs(want)))
        fail_msg("%s %s[%lld] is %.9g, not %.9g", name, key, (long long)k, got, want);
    }
    shards_free(&res[i]);
  }
  for (int i = 0; i < n_in; i++) shards_free(&args[i]);
  free(args);
  free(res);
  npz_free(&z);
  module_free(m);
  buf_free(&b);
  free(path);
  free(data);
}

/* ---- small programs: one i32 vector in, one out -------------------------------------------- */

static Err *run_text(const char *text, int replicas, int partitions, Tensor *const *in, int n_in,
                     Shards *out) {
  Module *m = NULL;
  TRY(stablehlo_read_text("test.mlir", str_from(text), &m));
  Err *e = ir_verify(m);
  Shards arg = {n_in, (Tensor **)in};
  InterpOpts opts = {.replicas = replicas, .partitions = partitions};
  if (!e) e = interp_run(m, (Str){0}, &opts, &arg, n_in ? 1 : 0, out, 1);
  module_free(m);
  return e;
}

/* in: one value for each process; want: n rows, each as long as the result. */
static void expect(const char *text, int replicas, int partitions, int64_t len, const int32_t *in,
                   const int32_t *want) {
  int n = replicas * partitions;
  Tensor *args[16] = {0};
  Shards out = {0};
  for (int p = 0; p < n; p++) args[p] = vec(len, in + p * len);
  ok(run_text(text, replicas, partitions, args, n, &out));
  for (int p = 0; p < n; p++) {
    const Tensor *t = out.n == 1 ? out.t[0] : out.t[p];
    for (int64_t k = 0; k < t->count; k++)
      if (((int32_t *)t->data)[k] != want[p * t->count + k])
        fail_msg("process %d, element %lld: %d, not %d", p, (long long)k, ((int32_t *)t->data)[k],
                 want[p * t->count + k]);
    tensor_release(args[p]);
  }
  shards_free(&out);
}

#define ALL_REDUCE(attrs)                                   \
  "func.func @main(%a: tensor<1xi32>) -> tensor<1xi32> {\n" \
  "  %0 = \"stablehlo.all_reduce\"(%a) <{" attrs "}> ({\n"  \
  "  ^bb0(%x: tensor<i32>, %y: tensor<i32>):\n"             \
  "    %s = stablehlo.add %x, %y : tensor<i32>\n"           \
  "    stablehlo.return %s : tensor<i32>\n"                 \
  "  }) : (tensor<1xi32>) -> tensor<1xi32>\n"               \
  "  return %0 : tensor<1xi32>\n"                           \
  "}\n"

/* Processes of 2 replicas x 2 partitions hold 1, 10, 100, 1000 (specification: process groups). */
static void groups(void **state) {
  (void)state;
  const int32_t in[] = {1, 10, 100, 1000};
  /* cross_replica: same partition of both replicas */
  expect(ALL_REDUCE("replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"), 2, 2, 1, in,
         (const int32_t[]){101, 1010, 101, 1010});
  /* no groups: all replicas */
  expect(ALL_REDUCE("replica_groups = dense<> : tensor<0x0xi64>"), 2, 2, 1, in,
         (const int32_t[]){101, 1010, 101, 1010});
  /* cross_replica_and_partition: all partitions of the replicas named */
  expect(ALL_REDUCE("channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, "
                    "replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>"),
         2, 2, 1, in, (const int32_t[]){11, 11, 1100, 1100});
  /* flattened_ids */
  expect(ALL_REDUCE(
             "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, "
             "replica_groups = dense<[[0, 3], [1, 2]]> : tensor<2x2xi64>, use_global_device_ids"),
         2, 2, 1, in, (const int32_t[]){1001, 110, 110, 1001});
  /* groups of different lengths, padded */
  expect(ALL_REDUCE("channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, "
                    "replica_groups = dense<[[0, 1, 2], [3, -1, -1]]> : tensor<2x3xi64>, "
                    "use_global_device_ids"),
         2, 2, 1, in, (const int32_t[]){111, 111, 111, 1000});
}

static void permute(void **state) {
  (void)state;
  /* cross_partition, in each replica: 0 -> 1; nobody sends to 0 */
  expect("func.func @main(%a: tensor<1xi32>) -> tensor<1xi32> {\n"
         "  %0 = \"stablehlo.collective_permute\"(%a) <{channel_handle = "
         "#stablehlo.channel_handle<handle = 1, type = 0>,"
         " source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<1xi32>) -> "
         "tensor<1xi32>\n"
         "  return %0 : tensor<1xi32>\n}\n",
         2, 2, 1, (const int32_t[]){1, 10, 100, 1000}, (const int32_t[]){0, 1, 0, 100});
}

static void ids(void **state) {
  (void)state;
  expect(
      "func.func @main(%a: tensor<1xi32>) -> tensor<1xi32> {\n"
      "  %p = stablehlo.partition_id : tensor<ui32>\n  %r = stablehlo.replica_id : tensor<ui32>\n"
      "  %c = stablehlo.constant dense<10> : tensor<ui32>\n  %t = stablehlo.multiply %r, %c : "
      "tensor<ui32>\n"
      "  %u = stablehlo.add %t, %p : tensor<ui32>\n  %i = stablehlo.convert %u : (tensor<ui32>) -> "
      "tensor<i32>\n"
      "  %v = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>\n"
      "  %s = stablehlo.add %v, %a : tensor<1xi32>\n  return %s : tensor<1xi32>\n}\n",
      2, 3, 1, (const int32_t[]){100, 100, 100, 100, 100, 100},
      (const int32_t[]){100, 101, 102, 110, 111, 112});
}

#define BRANCH(yes)                                                                  \
  "func.func @main(%a: tensor<1xi32>) -> tensor<1xi32> {\n"                          \
  "  %s = stablehlo.reshape %a : (tensor<1xi32>) -> tensor<i32>\n"                   \
  "  %c = stablehlo.constant dense<5> : tensor<i32>\n"                               \
  "  %p = stablehlo.compare GT, %s, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>\n" \
  "  %r = \"stablehlo.if\"(%p) ({\n" yes "    stablehlo.return %y : tensor<1xi32>\n" \
  "  }, {\n"                                                                         \
  "    stablehlo.return %a : tensor<1xi32>\n"                                        \
  "  }) : (tensor<i1>) -> tensor<1xi32>\n"                                           \
  "  return %r : tensor<1xi32>\n}\n"
#define REDUCE_IN_BRANCH(groups)                                               \
  "    %y = \"stablehlo.all_reduce\"(%a) <{replica_groups = " groups "}> ({\n" \
  "    ^bb0(%x: tensor<i32>, %z: tensor<i32>):\n"                              \
  "      %w = stablehlo.add %x, %z : tensor<i32>\n"                            \
  "      stablehlo.return %w : tensor<i32>\n"                                  \
  "    }) : (tensor<1xi32>) -> tensor<1xi32>\n"

static void divergence(void **state) {
  (void)state;
  const int32_t in[] = {3, 8, 1, 9};
  expect(BRANCH("    %y = stablehlo.negate %a : tensor<1xi32>\n"), 4, 1, 1, in,
         (const int32_t[]){3, -8, 1, -9});
  /* a collective among those who take the branch */
  expect(BRANCH(REDUCE_IN_BRANCH("dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>")), 4, 1, 1, in,
         (const int32_t[]){3, 17, 1, 17});
  /* with others: they never come */
  Tensor *args[4];
  Shards out = {0};
  for (int p = 0; p < 4; p++) args[p] = vec(1, in + p);
  Err *e = run_text(BRANCH(REDUCE_IN_BRANCH("dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>")), 4, 1, args,
                    4, &out);
  assert_non_null(e);
  assert_int_equal(e->code, ERR_PRECONDITION);
  err_free(e);
  for (int p = 0; p < 4; p++) tensor_release(args[p]);
}

/* Programs that differ: they meet at the collective; and two that wait for each other. */
#define PROGRAM(name, before)                                                                   \
  "func.func @" name "(%a: tensor<1xi32>) -> tensor<1xi32> {\n" before                          \
  "  %0 = \"stablehlo.all_reduce\"(%b) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> " \
  "({\n"                                                                                        \
  "  ^bb0(%x: tensor<i32>, %y: tensor<i32>):\n"                                                 \
  "    %s = stablehlo.add %x, %y : tensor<i32>\n"                                               \
  "    stablehlo.return %s : tensor<i32>\n"                                                     \
  "  }) : (tensor<1xi32>) -> tensor<1xi32>\n"                                                   \
  "  return %0 : tensor<1xi32>\n"                                                               \
  "}\n"
#define RECEIVE(name)                                                                           \
  "func.func @" name "(%t: !stablehlo.token) -> tensor<1xi32> {\n"                              \
  "  %0, %1 = \"stablehlo.recv\"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 7, " \
  "type = 3>,"                                                                                  \
  " is_host_transfer = true}> : (!stablehlo.token) -> (tensor<1xi32>, !stablehlo.token)\n"      \
  "  return %0 : tensor<1xi32>\n}\n"

static void different_programs(void **state) {
  (void)state;
  Shards out = {0};
  ok(run_text(
      "module {\n" PROGRAM("f", "  %b = stablehlo.negate %a : tensor<1xi32>\n") PROGRAM(
          "g",
          "  %b = stablehlo.multiply %a, %a : tensor<1xi32>\n") "func.func @main() -> "
                                                                "tensor<1xi32> {\n  %c = "
                                                                "stablehlo.constant dense<4> : "
                                                                "tensor<1xi32>\n"
                                                                "  %r:2 = "
                                                                "\"interpreter.run_parallel\"(%c, "
                                                                "%c) {programs = [[@f], [@g]]} : "
                                                                "(tensor<1xi32>, tensor<1xi32>) -> "
                                                                "(tensor<1xi32>, tensor<1xi32>)\n"
                                                                "  return %r#1 : "
                                                                "tensor<1xi32>\n}\n}\n",
      1, 1, NULL, 0, &out));
  assert_int_equal(*(int32_t *)out.t[0]->data, 12);
  shards_free(&out);
  Err *e = run_text(
      "module {\n" RECEIVE("f")
          RECEIVE("g") "func.func @main() -> tensor<1xi32> {\n  %t = stablehlo.after_all : "
                       "!stablehlo.token\n"
                       "  %r:2 = \"interpreter.run_parallel\"(%t, %t) {programs = [[@f], [@g]]} : "
                       "(!stablehlo.token, !stablehlo.token) -> (tensor<1xi32>, tensor<1xi32>)\n"
                       "  return %r#1 : tensor<1xi32>\n}\n}\n",
      1, 1, NULL, 0, &out);
  assert_non_null(e);
  assert_int_equal(e->code, ERR_PRECONDITION);
  err_free(e);
}

/* A future is done when async_done asks. */
static void asynchronous(void **state) {
  (void)state;
  expect(
      "func.func @main(%a: tensor<1xi32>) -> tensor<2xi32> {\n"
      "  %f = \"stablehlo.async_start\"(%a) ({\n  ^bb0(%b: tensor<1xi32>):\n"
      "    %g = \"stablehlo.all_gather\"(%b) <{all_gather_dim = 0 : i64, replica_groups = "
      "dense<[[1, 0]]> : "
      "tensor<1x2xi64>}> : (tensor<1xi32>) -> tensor<2xi32>\n"
      "    stablehlo.return %g : tensor<2xi32>\n"
      "  }) : (tensor<1xi32>) -> !stablehlo.future<tensor<2xi32>>\n"
      "  %r = \"stablehlo.async_done\"(%f) : (!stablehlo.future<tensor<2xi32>>) -> tensor<2xi32>\n"
      "  return %r : tensor<2xi32>\n}\n",
      2, 1, 1, (const int32_t[]){5, 6}, (const int32_t[]){6, 5, 6, 5});
}

/* Between devices: 0 -> 1 and 1 -> 2; 0 receives nothing, which is zeros. */
static void send_to_partner(void **state) {
  (void)state;
  expect("func.func @main(%a: tensor<1xi32>) -> tensor<1xi32> {\n"
         "  %t = stablehlo.create_token : !stablehlo.token\n"
         "  %s = \"stablehlo.send\"(%a, %t) <{channel_handle = #stablehlo.channel_handle<handle = "
         "3, type = 1>,"
         " is_host_transfer = false, source_target_pairs = dense<[[0, 1], [1, 2]]> : "
         "tensor<2x2xi64>}> : "
         "(tensor<1xi32>, !stablehlo.token) -> !stablehlo.token\n"
         "  %0, %1 = \"stablehlo.recv\"(%s) <{channel_handle = #stablehlo.channel_handle<handle = "
         "3, type = 1>,"
         " is_host_transfer = false, source_target_pairs = dense<[[0, 1], [1, 2]]> : "
         "tensor<2x2xi64>}> : "
         "(!stablehlo.token) -> (tensor<1xi32>, !stablehlo.token)\n"
         "  return %0 : tensor<1xi32>\n}\n",
         1, 3, 1, (const int32_t[]){7, 8, 9}, (const int32_t[]){0, 7, 8});
}

static void scatter_and_exchange(void **state) {
  (void)state;
  expect("func.func @main(%a: tensor<2xi32>) -> tensor<1xi32> {\n"
         "  %0 = \"stablehlo.reduce_scatter\"(%a) <{scatter_dimension = 0 : i64, replica_groups = "
         "dense<[[1, 0]]> : "
         "tensor<1x2xi64>}> ({\n"
         "  ^bb0(%x: tensor<i32>, %y: tensor<i32>):\n    %s = stablehlo.add %x, %y : tensor<i32>\n"
         "    stablehlo.return %s : tensor<i32>\n  }) : (tensor<2xi32>) -> tensor<1xi32>\n"
         "  return %0 : tensor<1xi32>\n}\n",
         2, 1, 2, (const int32_t[]){1, 2, 10, 20}, (const int32_t[]){22, 11});
  expect(
      "func.func @main(%a: tensor<2xi32>) -> tensor<2xi32> {\n"
      "  %0 = \"stablehlo.all_to_all\"(%a) <{split_dimension = 0 : i64, concat_dimension = 0 : "
      "i64, split_count = 2 : i64,"
      " replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2xi32>) -> tensor<2xi32>\n"
      "  return %0 : tensor<2xi32>\n}\n",
      2, 1, 2, (const int32_t[]){1, 2, 10, 20}, (const int32_t[]){1, 10, 2, 20});
  expect("func.func @main(%a: tensor<1xi32>) -> tensor<1xi32> {\n"
         "  %0 = \"stablehlo.cross-replica-sum\"(%a) {replica_groups = dense<[[0, 1, 2]]> : "
         "tensor<1x3xi64>} : "
         "(tensor<1xi32>) -> tensor<1xi32>\n  return %0 : tensor<1xi32>\n}\n",
         3, 1, 1, (const int32_t[]){1, 20, 300}, (const int32_t[]){321, 321, 321});
}

/* ---- shardings ----------------------------------------------------------------------------- */

static void blocks(const char *gspmd, int64_t rows, int64_t cols, int n, int64_t block_rows,
                   int64_t block_cols, const int32_t *first) {
  Module *m = module_new();
  Sharding *s;
  Mesh *mesh;
  int64_t dims[2] = {rows, cols};
  ok(sharding_from_gspmd(m, str_from(gspmd), 2, n, &s, &mesh));
  Tensor *whole = ints(2, dims, NULL), *part[16], *back;
  for (int32_t i = 0; i < whole->count; i++) ((int32_t *)whole->data)[i] = i + 1;
  for (int p = 0; p < n; p++) {
    ok(shard_cut(whole, s, mesh, p, &part[p]));
    assert_int_equal(part[p]->dims[0], block_rows);
    assert_int_equal(part[p]->dims[1], block_cols);
    assert_int_equal(*(int32_t *)part[p]->data, first[p]);
  }
  ok(shard_join(part, n, s, mesh, 2, dims, &back));
  assert_memory_equal(back->data, whole->data, tensor_bytes(whole));
  for (int p = 0; p < n; p++) tensor_release(part[p]);
  tensor_release(whole);
  tensor_release(back);
  module_free(m);
}

/* Expected first elements written out from XLA's definition of each form. */
static void gspmd(void **state) {
  (void)state;
  blocks("{devices=[2,2]<=[4]}", 4, 4, 4, 2, 2, (const int32_t[]){1, 3, 9, 11});
  blocks("{devices=[2,2]<=[2,2]T(1,0)}", 4, 4, 4, 2, 2, (const int32_t[]){1, 9, 3, 11});
  blocks("{devices=[2,2]3,1,2,0}", 4, 4, 4, 2, 2, (const int32_t[]){11, 3, 9, 1});
  blocks("{devices=[1,2,2]<=[4] last_tile_dim_replicate}", 4, 4, 4, 4, 2,
         (const int32_t[]){1, 1, 3, 3});
  blocks("{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dims={manual}}", 4, 4, 4, 2, 4,
         (const int32_t[]){1, 9, 1, 9});
  blocks("{replicated}", 4, 4, 4, 4, 4, (const int32_t[]){1, 1, 1, 1});
  /* 5 rows on 2: blocks of 3, the last one padded with zeros */
  blocks("{devices=[2,1]<=[2]}", 5, 2, 2, 3, 2, (const int32_t[]){1, 7});
  /* 3 rows on 4: the last device holds padding only */
  blocks("{devices=[4,1]<=[4]}", 3, 2, 4, 1, 2, (const int32_t[]){1, 3, 5, 0});
}

static void bad_gspmd(void **state) {
  (void)state;
  static const char *const bad[] = {"",
                                    "{",
                                    "{devices=}",
                                    "{devices=[2,2]}",
                                    "{devices=[2,2]<=[8]}",
                                    "{devices=[3,1]<=[3]}",
                                    "{devices=[2,2]<=[2,2]T(1,5)}",
                                    "{devices=[99999999999,99999999999]<=[4]}",
                                    "{devices=[4]<=[4]}",
                                    "{devices=[2,2]0,1,2",
                                    "{{replicated}}"};
  for (int i = 0; i < COUNT_OF(bad); i++) {
    Module *m = module_new();
    Sharding *s;
    Mesh *mesh;
    Err *e = sharding_from_gspmd(m, str_from(bad[i]), 2, 4, &s, &mesh);
    if (!e) fail_msg("accepted '%s'", bad[i]);
    err_free(e);
    module_free(m);
  }
}

/* An axis divided in two: "x":(1)2 is its major part, "x":(2)2 the minor one. */
static void sub_axes(void **state) {
  (void)state;
  MeshAxis axis = {STR("x"), 4};
  Mesh mesh = {.n_axes = 1, .axes = &axis};
  AxisRef major = {STR("x"), 1, 2}, minor = {STR("x"), 2, 2};
  DimSharding d[2] = {{.n_axes = 1, .axes = &minor}, {.n_axes = 1, .axes = &major}};
  Sharding s = {.mesh = &mesh, .n_dims = 2, .dims = d};
  int64_t dims[2] = {2, 2};
  Tensor *t = ints(2, dims, (const int32_t[]){1, 2, 3, 4}), *part;
  static const int32_t want[4] = {1, 3, 2, 4};
  for (int p = 0; p < 4; p++) {
    ok(shard_cut(t, &s, &mesh, p, &part));
    assert_int_equal(*(int32_t *)part->data, want[p]);
    tensor_release(part);
  }
  tensor_release(t);
}

int main(void) {
  static char *const names[] = {
      "partial_manual", "partial_manual_gspmd", "partial_manual2", "nested_manual",
      "coll2d",         "coll2d_gspmd",         "diverge",         "mesh3",
      "ring",           "grad_shardmap",        "partial_matmul",  "partial_matmul_gspmd",
      "psum_bf16"};
  struct CMUnitTest tests[COUNT_OF(names) + 11] = {cmocka_unit_test(groups),
                                                   cmocka_unit_test(permute),
                                                   cmocka_unit_test(ids),
                                                   cmocka_unit_test(divergence),
                                                   cmocka_unit_test(different_programs),
                                                   cmocka_unit_test(asynchronous),
                                                   cmocka_unit_test(send_to_partner),
                                                   cmocka_unit_test(scatter_and_exchange),
                                                   cmocka_unit_test(gspmd),
                                                   cmocka_unit_test(bad_gspmd),
                                                   cmocka_unit_test(sub_axes)};
  for (int i = 0; i < COUNT_OF(names); i++)
    tests[11 + i] = (struct CMUnitTest){names[i], against_xla, NULL, NULL, names[i]};
  return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
