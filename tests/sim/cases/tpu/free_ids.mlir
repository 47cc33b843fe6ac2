// A matrix of them is made a vector between, and its rows are taken apart and turned.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 4746 ±10%, peak 3010560 ±3%
// EXPECT tpu-v5e: cycles 7297 ±10%, peak 3010560 ±3%
func.func public @main(%x0: tensor<1000x128xf32>, %x1: tensor<16x100xi32>) -> (tensor<16x100x128xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16x100xi32>
  %1 = stablehlo.compare LT, %x1, %0, SIGNED : (tensor<16x100xi32>, tensor<16x100xi32>) -> tensor<16x100xi1>
  %c_0 = stablehlo.constant dense<1000> : tensor<i32>
  %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<16x100xi32>
  %3 = stablehlo.add %x1, %2 : tensor<16x100xi32>
  %4 = stablehlo.select %1, %3, %x1 : tensor<16x100xi1>, tensor<16x100xi32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<16x100xi32>) -> tensor<16x100x1xi32>
  %6 = "stablehlo.gather"(%x0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 128>}> : (tensor<1000x128xf32>, tensor<16x100x1xi32>) -> tensor<16x100x128xf32>
  return %6 : tensor<16x100x128xf32>
}
