// What XLA puts into one kernel, as its programs on an H100 show (tests/sim/gpu): all of a layer norm where Triton
// writes it; a gather and its indices; one stack of a loop, and no more. What it gives cuBLAS besides the operands.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM: kernels 1, temp 0
func.func @main(%x: tensor<4096x1024xf32>, %i: tensor<512x1xi32>) -> tensor<512x1024xf32> {
  %n = stablehlo.constant dense<7> : tensor<512x1xi32>
  %j = stablehlo.add %i, %n : tensor<512x1xi32>
  %g = "stablehlo.gather"(%x, %j) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1024>} : (tensor<4096x1024xf32>, tensor<512x1xi32>) -> tensor<512x1024xf32>
  return %g : tensor<512x1024xf32>
}
