// Pieces of what only a product reads are rounded before they are put together.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 32835 ±10%, peak 6291456 ±3%
// EXPECT tpu-v5e: cycles 19020 ±10%, peak 7340032 ±3%
// EXPECT tpu-v6e: cycles 12504 ±10%, peak 7340032 ±3%
func.func @main(%a: tensor<1024x256xf32>, %b: tensor<1024x256xf32>, %w: tensor<512x512xf32>) -> tensor<1024x512xf32> {
  %0 = stablehlo.add %a, %b : tensor<1024x256xf32>
  %1 = stablehlo.multiply %a, %b : tensor<1024x256xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<1024x256xf32>, tensor<1024x256xf32>) -> tensor<1024x512xf32>
  %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<1024x512xf32>, tensor<512x512xf32>) -> tensor<1024x512xf32>
  return %3 : tensor<1024x512xf32>
}
