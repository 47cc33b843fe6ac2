/* Saved programs past their checksum: a good one of several kinds of steps with the bytes of the input
 * written into it is loaded or refused, never followed out of its memory; what is loaded is not run, its
 * machine code may be anything. The input is a list of (place of three bytes, value); odd inputs are
 * taken as they are.
 *   build  clang, -DWEFT_FUZZ=ON, -DWEFT_SANITIZE=address,undefined
 *   seeds  none: each input begins at the good program */
#include <stdio.h>
#include <stdlib.h>

#include "dev/dev.h"
#include "stablehlo/stablehlo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] =
    "func.func public @main(%x: tensor<4x6xf32>, %n: tensor<i32>, %img: tensor<1x8x8x2xf32>, "
    "%k: tensor<3x3x2x4xf32>) -> (tensor<4x6xf32>, tensor<1x6x6x4xf32>) {\n"
    "  %c = stablehlo.constant dense<[1.0, -2.0, 3.5, 0.25, 7.0, -1.0]> : tensor<6xf32>\n"
    "  %i0 = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "  %cb = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>\n"
    "  %w:2 = stablehlo.while(%i = %i0, %v = %x) : tensor<i32>, tensor<4x6xf32>\n"
    "  cond {\n"
    "    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
    "    stablehlo.return %go : tensor<i1>\n"
    "  } do {\n"
    "    %i1 = stablehlo.add %i, %one : tensor<i32>\n"
    "    %row = stablehlo.dynamic_slice %v, %i, %i0, sizes = [1, 6] : (tensor<4x6xf32>, "
    "tensor<i32>, "
    "tensor<i32>) -> tensor<1x6xf32>\n"
    "    %t = stablehlo.tanh %row : tensor<1x6xf32>\n"
    "    %u = stablehlo.dynamic_update_slice %v, %t, %i1, %i0 : (tensor<4x6xf32>, tensor<1x6xf32>, "
    "tensor<i32>, tensor<i32>) -> tensor<4x6xf32>\n"
    "    %s = \"stablehlo.sort\"(%u) ({\n"
    "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "      %less = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
    "      stablehlo.return %less : tensor<i1>\n"
    "    }) {dimension = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>\n"
    "    stablehlo.return %i1, %s : tensor<i32>, tensor<4x6xf32>\n"
    "  }\n"
    "  %d = stablehlo.dot_general %w#1, %cb, contracting_dims = [1] x [1] : (tensor<4x6xf32>, "
    "tensor<4x6xf32>) -> tensor<4x4xf32>\n"
    "  %m = stablehlo.dot_general %d, %x, contracting_dims = [1] x [0] : (tensor<4x4xf32>, "
    "tensor<4x6xf32>) -> tensor<4x6xf32>\n"
    "  %p = stablehlo.convolution(%img, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
    "window = {stride = [1, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, "
    "feature_group_count = 1 : i64} : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>) -> "
    "tensor<1x6x6x4xf32>\n"
    "  return %m, %p : tensor<4x6xf32>, tensor<1x6x6x4xf32>\n"
    "}\n";

static const DevCompileOpts opts = {.replicas = 1, .partitions = 1, .keep = true};
static Dev *dev;
static Buf good;

static void start(void) {
  Module *m = NULL;
  DevProgram *p = NULL;
  setenv("WEFT_VINTERP", "off", 1); /* what begins as strips is kept later */
  Err *e = dev_open("cpu", &dev);
  if (!e) e = stablehlo_read("program", STR(text), &m);
  if (!e) e = dev_compile(dev, m, &opts, &p);
  if (e || !dev_program_save(p, &good)) {
    if (e) err_report(e);
    abort();
  }
  dev_program_release(p);
  module_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!dev) start();
  bool edits = size % 4 == 0;
  size_t n = edits ? good.n : size;
  uint8_t *bytes = memcpy(xmalloc(n + 1), edits ? (const uint8_t *)good.p : data, n);
  for (size_t i = 0; edits && i < size; i += 4) {
    size_t at = (size_t)data[i] | (size_t)data[i + 1] << 8 | (size_t)data[i + 2] << 16;
    bytes[at % n] = data[i + 3];
  }
  DevProgram *p;
  Err *e = dev_program_load(dev, (Str){(const char *)bytes, n}, &opts, &p);
  if (e) err_free(e);
  else dev_program_release(p);
  free(bytes);
  return 0;
}
