// A stack is made with its new side outside of all others, and then copied into tiles of two rows.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 631512 ±7%, peak 104595456 ±1%
// EXPECT tpu-v6e: cycles 322053 ±7%, peak 104595456 ±1%
func.func public @main(%a: tensor<2432x1792xf32>, %b: tensor<2432x1792xf32>) -> tensor<2432x2x1792xf32> {
  %0 = stablehlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<2432x1792xf32>) -> tensor<2432x1x1792xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [0, 2] : (tensor<2432x1792xf32>) -> tensor<2432x1x1792xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<2432x1x1792xf32>, tensor<2432x1x1792xf32>) -> tensor<2432x2x1792xf32>
  return %2 : tensor<2432x2x1792xf32>
}
