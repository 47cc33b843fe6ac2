/* Bytecode against outside truth: every artifact of the golden corpus (written by jaxlib) is read
 * and compared with its text (printed by jaxlib, read by the text reader), written and read back.
 * And the primitives, the table of operations, and input that must be refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err_test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "stablehlo/bytecode_priv.h"
#include "stablehlo/bytecode_write_priv.h"
#include "stablehlo/mesh_groups.h"
#include "stablehlo/stablehlo.h"

#define CORPUS WEFT_SOURCE_DIR "/tests/golden/corpus/" /* as a plugin gets them */
#define FORMS     \
  WEFT_SOURCE_DIR \
  "/tests/golden/bytecode/" /* Shardy, plain dialects, old bytecode: make_bytecode.py */

/* What JAX calls an argument comes and goes as its location. */
static void test_argument_names(void **state) {
  (void)state;
  const char *text = "func.func @main(%arg0: tensor<f32> loc(\"params['w'][0]\"), %x: tensor<f32>) "
                     "-> tensor<f32> { return %arg0 : tensor<f32> }";
  Module *m, *again;
  Buf b = {0};
  ok_with(stablehlo_read("x.mlir", str_from(text), &m), "text");
  ok_with(stablehlo_write_bytecode(&b, m, NULL), "write");
  ok_with(stablehlo_read("x.mlirbc", (Str){b.p, b.n}, &again), "bytecode");
  Value **args = module_main(again)->body->args;
  assert_true(str_is(args[0]->name, "params['w'][0]"));
  assert_true(str_is(args[1]->name, "x"));
  buf_free(&b);
  stablehlo_write_text(&b, again, &(TextOpts){.locations = true});
  assert_non_null(strstr(b.p, "loc(\"params['w'][0]\")"));
  buf_free(&b);
  module_free(again);
  module_free(m);
}

/* ---- the corpus ---- */

typedef void (*FileFn)(const char *dir, const char *name, Str bytes);

static int each_artifact(const char *dir, FileFn fn) {
  DIR *d = opendir(dir);
  assert_non_null(d);
  int n = 0;
  for (struct dirent *entry; (entry = readdir(d));) {
    if (!str_ends(str_from(entry->d_name), ".mlirbc")) continue;
    char *path = xasprintf("%s%s", dir, entry->d_name);
    Buf b = {0};
    ok_with(file_read(path, &b), path);
    fn(dir, entry->d_name, (Str){b.p, b.n});
    buf_free(&b);
    free(path);
    n++;
  }
  closedir(d);
  return n;
}

static void equals_text(const char *dir, const char *name, Str bytes) {
  Module *binary, *text;
  ok_with(stablehlo_read_bytecode(name, bytes, &binary), name);
  size_t stem = strcspn(name, "."); /* x.v0.9.0.mlirbc has the text x.mlir */
  char *path = xasprintf("%s%.*s.mlir", dir, (int)stem, name);
  Buf b = {0};
  ok_with(file_read(path, &b), path);
  ok_with(stablehlo_read_text(path, (Str){b.p, b.n}, &text), path);
  ok_with(stablehlo_compare(binary, text), name);
  module_free(binary);
  module_free(text);
  buf_free(&b);
  free(path);
}

static void test_equals_text(void **state) {
  (void)state;
  assert_true(each_artifact(CORPUS, equals_text) >= 248);
  assert_true(each_artifact(FORMS, equals_text) >= 55);
}

/* tests/frameworks/test_bytecode.py gives them to jaxlib. */
static void leave(const char *name, const char *version, const Buf *b) {
  const char *dir = env_get("WEFT_TEST_WRITES");
  if (!dir) return;
  char *path = xasprintf("%s/%.*s@%s.mlirbc", dir, (int)(strlen(name) - strlen(".mlirbc")), name,
                         version ? version : "oldest");
  ok_with(file_write(path, b->p, b->n), path);
  free(path);
}

static void write_read(const char *name, const Module *m, const char *version) {
  Buf one = {0}, two = {0};
  Module *again;
  ok_with(stablehlo_write_bytecode(&one, m, version), name);
  leave(name, version, &one);
  ok_with(stablehlo_read_bytecode("written", (Str){one.p, one.n}, &again), name);
  ok_with(stablehlo_compare(m, again), name);
  ok_with(stablehlo_write_bytecode(&two, again, version), name);
  assert_int_equal(one.n, two.n);
  assert_memory_equal(one.p, two.p, one.n);
  module_free(again);
  buf_free(&one);
  buf_free(&two);
}

static void round_trip(const char *dir, const char *name, Str bytes) {
  Module *m;
  (void)dir;
  ok_with(stablehlo_read_bytecode(name, bytes, &m), name);
  if (str_starts(str_from(name), "chlo_")) { /* chlo: VHLO has no row */
    Buf out = {0};
    Err *e = stablehlo_write_bytecode(&out, m, NULL);
    assert_non_null(e);
    assert_int_equal(e->code, ERR_UNIMPLEMENTED);
    err_free(e);
    buf_free(&out);
    module_free(m);
    return;
  }
  write_read(name, m, NULL);
  write_read(name, m, "1.17.0");
  module_free(m);
}

static void test_round_trip(void **state) {
  (void)state;
  assert_true(each_artifact(CORPUS, round_trip) >= 248);
  assert_true(each_artifact(FORMS, round_trip) >= 55);
}

/* ---- primitives ---- */

static void test_numbers(void **state) {
  (void)state;
  static const uint64_t v[] = {
      0, 1, 127, 128, 16383, 16384, ((uint64_t)1 << 56) - 1, (uint64_t)1 << 56, UINT64_MAX};
  static const size_t bytes[] = {1, 1, 1, 2, 2, 3, 8, 9, 9};
  for (int i = 0; i < COUNT_OF(v); i++) {
    Buf b = {0};
    put_varint(&b, v[i]);
    put_svarint(&b, (int64_t)v[i]);
    put_svarint(&b, -(int64_t)(v[i] / 2));
    Cur c = {(const uint8_t *)b.p, (const uint8_t *)b.p + b.n, NULL};
    assert_true(cur_varint(&c) == v[i]);
    assert_int_equal((size_t)((const char *)c.p - b.p), bytes[i]);
    assert_true(cur_svarint(&c) == (int64_t)v[i]);
    assert_true(cur_svarint(&c) == -(int64_t)(v[i] / 2));
    assert_true(c.p == c.end && !c.bad);
    cur_varint(&c);
    assert_non_null(c.bad);
    buf_free(&b);
  }
  Buf b = {0}; /* the format's own rule, written out by hand */
  put_varint(&b, 128);
  assert_memory_equal(b.p, "\x02\x02", 2);
  buf_free(&b);
}

static void test_table(void **state) {
  (void)state;
  for (int i = 0; i < vhlo_n_ops; i++) {
    const VhloOp *o = &vhlo_ops[i];
    if (i) assert_true(strcmp(vhlo_ops[i - 1].name, o->name) < 0);
    assert_ptr_equal(vhlo_find(str_from(o->name)), o);
    assert_true(o->since >= VHLO_OLDEST && o->since <= VHLO_NEWEST &&
                (!o->until || o->until >= o->since));
    const char *rest = o->attrs;
    Str name, kind, last = {"", 0};
    while (vhlo_next_attr(&rest, &name, &kind)) {
      assert_true(str_cmp(last, name) < 0);
      last = name;
      bool padded_twice = str_is(str_from(o->name), "dynamic_conv_v1") && str_is(name, "padding");
      if (o->kind != OP_UNKNOWN && !padded_twice && !op_attr_spec(o->kind, name)) {
        print_error("%s: '%.*s' is not in ops.def\n", o->name, STR_ARG(name));
        fail();
      }
    }
  }
  assert_int_equal(vhlo_n_ops, 145);
  assert_null(vhlo_find(STR("add_v9")));
  /* at every version exactly one row of an op is legal */
  for (int i = 0; i < vhlo_n_ops; i++)
    for (int k = 0; k < vhlo_n_ops; k++) {
      const VhloOp *a = &vhlo_ops[i], *b = &vhlo_ops[k];
      if (i == k || a->kind != b->kind || a->kind == OP_UNKNOWN || a->since > b->since) continue;
      assert_true(a->until && a->until < b->since);
    }
  assert_string_equal(vhlo_newest(OP_DOT_GENERAL, VHLO_VERSION(1, 5))->name, "dot_general_v1");
  assert_string_equal(vhlo_newest(OP_DOT_GENERAL, VHLO_VERSION(1, 6))->name, "dot_general_v2");
}

/* ---- versions ---- */

static Module *from_text(const char *text) {
  Module *m;
  ok_with(stablehlo_read_text("test", str_from(text), &m), "text");
  return m;
}

static void test_versions(void **state) {
  (void)state;
  Module *m =
      from_text("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
                "  %0 = stablehlo.tanh %a : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n");
  Buf b = {0};
  ok_with(stablehlo_write_bytecode(&b, m, NULL), "oldest");
  assert_memory_equal(b.p, "ML\xEFR\x0DStableHLO_v1.0.0", 22);
  assert_non_null(memmem(b.p, b.n, "tanh_v1", 8));
  b.n = 0;
  ok_with(stablehlo_write_bytecode(&b, m, "1.13.7"), "given");
  assert_memory_equal(b.p, "ML\xEFR\x0DStableHLO_v1.13.7", 23);
  assert_non_null(memmem(b.p, b.n, "tanh_v2", 8));
  Err *e = stablehlo_write_bytecode(&b, m, "1.99.0");
  assert_non_null(e);
  err_free(e);
  module_free(m);
  m = from_text("func.func @main(%a: tensor<4xf8E4M3>) -> tensor<4xf8E4M3> {\n  return %a : "
                "tensor<4xf8E4M3>\n}\n");
  e = stablehlo_write_bytecode(&b, m, "1.6.0");
  assert_non_null(e);
  assert_int_equal(e->code, ERR_UNIMPLEMENTED);
  err_free(e);
  b.n = 0;
  ok_with(stablehlo_write_bytecode(&b, m, NULL), "newer type");
  assert_memory_equal(b.p, "ML\xEFR\x0DStableHLO_v1.7.0", 22);
  module_free(m);
  buf_free(&b);
}

/* ---- what must be refused ---- */

static Buf artifact(const char *name) {
  char *path = xasprintf(CORPUS "%s.mlirbc", name);
  Buf b = {0};
  ok_with(file_read(path, &b), path);
  free(path);
  return b;
}

static Err *refused(Str bytes) {
  Module *m = NULL;
  Err *e = stablehlo_read_bytecode("bad", bytes, &m);
  assert_non_null(e);
  assert_null(m);
  assert_non_null(e->place);
  return e;
}

static void test_refused(void **state) {
  (void)state;
  Buf b = artifact("while_collatz");
  for (size_t n = 0; n < b.n; n++) err_free(refused((Str){b.p, n}));
  char *at = memmem(b.p, b.n, "constant_v1", 11);
  assert_non_null(at);
  at[10] = '9';
  Err *e = refused((Str){b.p, b.n});
  assert_int_equal(e->code, ERR_UNIMPLEMENTED);
  assert_non_null(strstr(e->msg, "vhlo.constant_v9"));
  err_free(e);
  at[10] = '1';
  b.p[4] = 7 << 1 | 1; /* bytecode version 7 */
  e = refused((Str){b.p, b.n});
  assert_int_equal(e->code, ERR_UNIMPLEMENTED);
  err_free(e);
  b.p[4] = 6 << 1 | 1;
  b.p[0] = 'X';
  err_free(refused((Str){b.p, b.n}));
  buf_free(&b);
}

/* Any byte changed: read or refused, never worse. */
static void test_changed_bytes(void **state) {
  (void)state;
  static const char *const names[] = {"while_collatz", "coll_psum_groups", "sort_two_keys"};
  for (int k = 0; k < COUNT_OF(names); k++) {
    Buf b = artifact(names[k]);
    for (size_t i = 4; i < b.n; i++) {
      char old = b.p[i];
      b.p[i] = (char)(old ^ (1 << (i % 8)));
      Module *m = NULL;
      err_free(stablehlo_read_bytecode("changed", (Str){b.p, b.n}, &m));
      module_free(m);
      b.p[i] = old;
    }
    buf_free(&b);
  }
}

/* ---- replica groups by mesh axes ---- */

static void groups_are(Module *m, const Mesh *mesh, const AxisRef *axes, int n, int64_t rows,
                       const int64_t *want) {
  Attr *a;
  ok_with(mesh_groups(m, mesh, axes, n, &a), "groups");
  assert_int_equal(a->tensor->dims[0], rows);
  assert_memory_equal(a->tensor->data, want, sizeof(int64_t) * (size_t)a->tensor->count);
}

static void test_mesh_groups(void **state) {
  (void)state;
  Module *m = module_new();
  MeshAxis axes[] = {{STR("x"), 2}, {STR("y"), 4}};
  Mesh mesh = {.n_axes = 2, .axes = axes};
  AxisRef x = {STR("x"), 0, 0}, y = {STR("y"), 0, 0}, major = {STR("y"), 1, 2},
          minor = {STR("y"), 2, 2};
  groups_are(m, &mesh, &y, 1, 2, (int64_t[]){0, 1, 2, 3, 4, 5, 6, 7});
  groups_are(m, &mesh, &x, 1, 4, (int64_t[]){0, 4, 1, 5, 2, 6, 3, 7});
  groups_are(m, &mesh, (AxisRef[]){y, x}, 2, 1, (int64_t[]){0, 4, 1, 5, 2, 6, 3, 7});
  groups_are(m, &mesh, &major, 1, 4, (int64_t[]){0, 2, 1, 3, 4, 6, 5, 7});
  groups_are(m, &mesh, &minor, 1, 4, (int64_t[]){0, 1, 2, 3, 4, 5, 6, 7});
  groups_are(m, &mesh, NULL, 0, 8, (int64_t[]){0, 1, 2, 3, 4, 5, 6, 7});
  MeshAxis with_one[] = {{STR("x"), 2}, {STR("o"), 1}, {STR("y"), 4}};
  Mesh one = {.n_axes = 3, .axes = with_one};
  AxisRef o = {STR("o"), 0, 0};
  groups_are(m, &one, (AxisRef[]){o, x}, 2, 4, (int64_t[]){0, 4, 1, 5, 2, 6, 3, 7});
  mesh.n_ids = 8;
  mesh.ids = (int64_t[]){7, 6, 5, 4, 3, 2, 1, 0};
  groups_are(m, &mesh, &x, 1, 4, (int64_t[]){7, 3, 6, 2, 5, 1, 4, 0});
  Attr *a;
  AxisRef bad[] = {{STR("z"), 0, 0}, {STR("y"), 1, 3}};
  for (int i = 0; i < COUNT_OF(bad); i++) {
    Err *e = mesh_groups(m, &mesh, &bad[i], 1, &a);
    assert_non_null(e);
    err_free(e);
  }
  module_free(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers),        cmocka_unit_test(test_table),
      cmocka_unit_test(test_equals_text),    cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_versions),       cmocka_unit_test(test_refused),
      cmocka_unit_test(test_mesh_groups),    cmocka_unit_test(test_changed_bytes),
      cmocka_unit_test(test_argument_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
