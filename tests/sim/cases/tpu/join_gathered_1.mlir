// Rows that only products read are rounded before they are gathered.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: temp 1048576
func.func public @main(%t: tensor<9000x128xf32>, %i: tensor<4096x1xi32>, %w: tensor<128x64xf32>) -> (tensor<4096x64xf32>) {
  %g = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 128>}> : (tensor<9000x128xf32>, tensor<4096x1xi32>) -> tensor<4096x128xf32>
  %p = stablehlo.dot_general %g, %w, contracting_dims = [1] x [0] : (tensor<4096x128xf32>, tensor<128x64xf32>) -> tensor<4096x64xf32>
  return %p : tensor<4096x64xf32>
}
