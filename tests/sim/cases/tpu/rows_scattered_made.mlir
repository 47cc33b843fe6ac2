// Rows of whole lanes are made where they are added up, which has no estimate; narrower ones before, with their
// elements in sublanes, and turned.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=128
// EXPECT tpu-v5e: cycles 0
// WITH N=64
// EXPECT tpu-v5e: cycles 6696 ±3%
!sums = tensor<500x$Nxbf16>
!rows = tensor<3000x$Nxbf16>
func.func public @main(%x: !rows, %y: tensor<3000xbf16>, %i: tensor<3000x1xi32>) -> !sums {
  %b = stablehlo.broadcast_in_dim %y, dims = [0] : (tensor<3000xbf16>) -> !rows
  %r = stablehlo.multiply %x, %b : !rows
  %z = stablehlo.constant dense<0.0> : !sums
  %d = "stablehlo.scatter"(%z, %i, %r) <{scatter_dimension_numbers =
    #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<bf16>, %e: tensor<bf16>):
    %c = stablehlo.add %a, %e : tensor<bf16>
    stablehlo.return %c : tensor<bf16>
  }) : (!sums, tensor<3000x1xi32>, !rows) -> !sums
  return %d : !sums
}
