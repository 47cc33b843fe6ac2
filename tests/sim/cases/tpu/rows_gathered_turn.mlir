// The table is turned; so are the rows, where they pad less so, as the matrix of all of them.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=40 M=200 K=30
// EXPECT tpu-v5e: kernels(copy) 2
// WITH N=12 M=256 K=10
// EXPECT tpu-v3: kernels(copy) 2
// WITH N=48 M=128 K=20
// EXPECT tpu-v5e: kernels(copy) 1
!table = tensor<8000x$Nxf32>
!places = tensor<$Mx$Kxi32>
!rows = tensor<$Mx$Kx$Nxf32>
!sums = tensor<$Mx$Nxf32>
func.func public @main(%e: !table, %i: !places) -> !sums {
  %r = "stablehlo.gather"(%e, %i) <{dimension_numbers = #stablehlo.gather< offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, $N>}> : (!table, !places) -> !rows
  %q = stablehlo.tanh %r : !rows
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [1] : (!rows, tensor<f32>) -> !sums
  return %s : !sums
}
