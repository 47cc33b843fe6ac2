// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 29656 ±15%, arguments 8388608, results 4194304, temp 0, fits 1, kernels 1
// EXPECT tpu-v3: cycles 29848 ±15%, arguments 8388608, results 4194304, temp 0, fits 1, kernels 1
// EXPECT tpu-v4: cycles 15582 ±15%, arguments 8388608, results 4194304, temp 0, fits 1, kernels 1
// EXPECT tpu-v5e: cycles 40208 ±15%, arguments 8388608, results 4194304, temp 0, fits 1, kernels 1
// EXPECT tpu-v5p: cycles 11868 ±15%, arguments 8388608, results 4194304, temp 0, fits 1, kernels 1
// EXPECT tpu-v6e: cycles 16327 ±15%, arguments 8388608, results 4194304, temp 0, fits 1, kernels 1
// EXPECT tpu7x: cycles 9550 ±15%, arguments 8388608, results 4194304, temp 0, fits 1, kernels 1
func.func @main(%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %0 = stablehlo.add %a, %b : tensor<1024x1024xf32>
  return %0 : tensor<1024x1024xf32>
}
