// A batch of matrices times vectors, as experts are mixed: a loop, for which nothing is laid out anew.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: kernels(copy) 0
func.func public @main(%a: tensor<4x256x128xf32>, %b: tensor<256x4xf32>) -> tensor<256x128xf32> {
  %c = stablehlo.dot_general %a, %b, batching_dims = [1] x [0], contracting_dims = [0] x [1] : (tensor<4x256x128xf32>, tensor<256x4xf32>) -> tensor<256x128xf32>
  return %c : tensor<256x128xf32>
}
