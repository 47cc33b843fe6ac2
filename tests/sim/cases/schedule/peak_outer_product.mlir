// TRUTH by construction
// EXPECT tpu-v3: kernels(dot_general) 0, kernels(multiply) 1
func.func @main(%a: tensor<64x512xf32>, %b: tensor<64x8xf32>) -> tensor<64x8x512xf32> {
  %0 = stablehlo.dot_general %b, %a, batching_dims = [0] x [0], contracting_dims = [] x [] : (tensor<64x8xf32>, tensor<64x512xf32>) -> tensor<64x8x512xf32>
  return %0 : tensor<64x8x512xf32>
}
