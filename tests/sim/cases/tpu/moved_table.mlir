// Places in a tall matrix are copied to rows, then made a vector; what is gathered goes the same way back.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5p: cycles 14277 ±10%, peak 3335168 ±3%
// EXPECT tpu7x: cycles 8580 ±10%, peak 3418112 ±3%
func.func public @main(%x0: tensor<256xf32>, %x1: tensor<934x197xi32>) -> (tensor<934x197xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<934x197xi32>
  %1 = stablehlo.compare LT, %x1, %0, SIGNED : (tensor<934x197xi32>, tensor<934x197xi32>) -> tensor<934x197xi1>
  %c_0 = stablehlo.constant dense<256> : tensor<i32>
  %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<934x197xi32>
  %3 = stablehlo.add %x1, %2 : tensor<934x197xi32>
  %4 = stablehlo.select %1, %3, %x1 : tensor<934x197xi1>, tensor<934x197xi32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<934x197xi32>) -> tensor<934x197x1xi32>
  %6 = "stablehlo.gather"(%x0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<256xf32>, tensor<934x197x1xi32>) -> tensor<934x197xf32>
  return %6 : tensor<934x197xf32>
}
