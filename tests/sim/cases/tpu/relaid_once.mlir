// Rows of a table by two lists of places: the table, which lies by columns, is copied to rows once, and both read that copy.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 123806 ±5%, peak 122343936 ±1%
// EXPECT tpu-v2: cycles 293634 ±3%, peak 122349568 ±1%
func.func public @main(%t: tensor<200000x24xf32>, %i: tensor<1024x1xi32>, %j: tensor<1024x1xi32>) -> (tensor<1024x24xf32>, tensor<1024x24xf32>) {
  %a = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 24>}> : (tensor<200000x24xf32>, tensor<1024x1xi32>) -> tensor<1024x24xf32>
  %b = "stablehlo.gather"(%t, %j) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 24>}> : (tensor<200000x24xf32>, tensor<1024x1xi32>) -> tensor<1024x24xf32>
  return %a, %b : tensor<1024x24xf32>, tensor<1024x24xf32>
}
