// How much an operation of its own takes in one window.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: cycles 20435 ±7%
// EXPECT tpu-v5p: cycles 14687 ±7%
// EXPECT tpu-v5e: cycles 52670 ±7%
func.func public @main(%a: tensor<1056x1280xf32>, %b: tensor<1056x1280xf32>) -> tensor<1056x1280xf32> {
  %0 = stablehlo.add %a, %b : tensor<1056x1280xf32>
  return %0 : tensor<1056x1280xf32>
}
