// Row numbers that are reckoned are stored, then held to the rows and padded to a tile.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 407 ±10%, peak 778240 ±3%
// EXPECT tpu-v5e: cycles 3648 ±10%, peak 1290240 ±3%
// EXPECT tpu-v6e: cycles 4238 ±10%, peak 1290240 ±3%
func.func public @main(%x0: tensor<1000x128xf32>, %x1: tensor<500xi32>) -> (tensor<500x128xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<500xi32>
  %1 = stablehlo.compare LT, %x1, %0, SIGNED : (tensor<500xi32>, tensor<500xi32>) -> tensor<500xi1>
  %c_0 = stablehlo.constant dense<1000> : tensor<i32>
  %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<500xi32>
  %3 = stablehlo.add %x1, %2 : tensor<500xi32>
  %4 = stablehlo.select %1, %3, %x1 : tensor<500xi1>, tensor<500xi32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<500xi32>) -> tensor<500x1xi32>
  %6 = "stablehlo.gather"(%x0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 128>}> : (tensor<1000x128xf32>, tensor<500x1xi32>) -> tensor<500x128xf32>
  return %6 : tensor<500x128xf32>
}
