// A GPU adds 32 bits in one instruction; 16 bits it compares and tries again. Only rows that are hit are touched.
// TRUTH measured on an H200 with XLA
// WITH N=8192 T=bf16
// EXPECT H200: us 52.6 ±35%
// WITH N=4096 T=f32
// EXPECT H200: us 9.6 ±35%
func.func @main(%i: tensor<$Nx1xi32>, %u: tensor<$Nx768x$T>) -> tensor<50304x768x$T> {
  %z = stablehlo.constant dense<0.0> : tensor<$T>
  %t = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<$T>) -> tensor<50304x768x$T>
  %r = "stablehlo.scatter"(%t, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<$T>, %b: tensor<$T>):
    %s = stablehlo.add %a, %b : tensor<$T>
    stablehlo.return %s : tensor<$T>
  }) : (tensor<50304x768x$T>, tensor<$Nx1xi32>, tensor<$Nx768x$T>) -> tensor<50304x768x$T>
  return %r : tensor<50304x768x$T>
}
