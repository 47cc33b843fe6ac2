// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v4: cycles 5074 ±2%, kernels(dot_general) 0
// EXPECT tpu-v5e: cycles 10475 ±2%, kernels(dot_general) 0
// EXPECT tpu-v5p: cycles 6789 ±2%, kernels(dot_general) 0
// EXPECT tpu-v6e: cycles 8012 ±2%, kernels(dot_general) 0
func.func public @main(%a: tensor<512x768xf32>, %b: tensor<768x1xf32>) -> tensor<512x1xf32> {
  %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<512x768xf32>, tensor<768x1xf32>) -> tensor<512x1xf32>
  return %y : tensor<512x1xf32>
}
