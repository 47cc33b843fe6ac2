// What elements are taken out of is not widened for that.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM,library: temp 301989888 ±0.1%
func.func @main(%x: tensor<4096x256xbf16>, %w: tensor<256x32768xbf16>, %i: tensor<4096x1xi32>) -> tensor<4096xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4096x256xbf16>, tensor<256x32768xbf16>) -> tensor<4096x32768xbf16>
  %f = stablehlo.convert %y : (tensor<4096x32768xbf16>) -> tensor<4096x32768xf32>
  %g = "stablehlo.gather"(%f, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<4096x32768xf32>, tensor<4096x1xi32>) -> tensor<4096xf32>
  return %g : tensor<4096xf32>
}
