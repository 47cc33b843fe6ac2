// Loops move tiles slower than products do, narrow ones most of all.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v4: cycles 58488 ±3%
func.func @main(%a: tensor<2048x2048xf32>, %b: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {
  %0 = stablehlo.tanh %a : tensor<2048x2048xf32>
  %1 = stablehlo.add %0, %b : tensor<2048x2048xf32>
  return %1 : tensor<2048x2048xf32>
}
