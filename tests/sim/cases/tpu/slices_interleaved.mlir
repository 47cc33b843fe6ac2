// Two arrays, element by element: stacked, copied into tiles of two rows, joined by a reshape of its own.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 5431 ±7%, peak 645120 ±1%
// EXPECT tpu-v6e: cycles 5226 ±7%, peak 645120 ±1%
func.func public @main(%a: tensor<128x154xf32>, %b: tensor<128x154xf32>) -> tensor<128x308xf32> {
  %0 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<128x154xf32>) -> tensor<128x154x1xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [0, 1] : (tensor<128x154xf32>) -> tensor<128x154x1xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 2 : (tensor<128x154x1xf32>, tensor<128x154x1xf32>) -> tensor<128x154x2xf32>
  %3 = stablehlo.reshape %2 : (tensor<128x154x2xf32>) -> tensor<128x308xf32>
  return %3 : tensor<128x308xf32>
}
