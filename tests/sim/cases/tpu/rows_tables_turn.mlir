// The rows and their sums are turned, or the rows and both tables, there and back: whichever the padding of the
// rows of 128 lanes makes up for.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=8000 M=40
// EXPECT tpu-v5e: kernels(copy) 2
// WITH N=30000 M=48
// EXPECT tpu-v5e: kernels(copy) 5
// WITH N=9000 M=16
// EXPECT tpu-v6e: kernels(copy) 2
// WITH N=9000 M=64
// EXPECT tpu-v6e: kernels(copy) 5
!table = tensor<$Nx$Mxf32>
!sums = tensor<$Nx$Mxbf16>
!rows = tensor<384x$Mxbf16>
func.func public @main(%p: !table, %s: !table, %i: tensor<384x1xi32>, %g: !rows) -> (!table, !table) {
  %z = stablehlo.constant dense<0.0> : !sums
  %d = "stablehlo.scatter"(%z, %i, %g) <{scatter_dimension_numbers = #stablehlo.scatter< update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %c = stablehlo.add %a, %b : tensor<bf16>
    stablehlo.return %c : tensor<bf16>
  }) : (!sums, tensor<384x1xi32>, !rows) -> !sums
  %w = stablehlo.convert %d : (!sums) -> !table
  %q = stablehlo.multiply %w, %w : !table
  %t = stablehlo.add %s, %q : !table
  %l = stablehlo.constant dense<0.01> : !table
  %u = stablehlo.multiply %w, %l : !table
  %r = stablehlo.sqrt %t : !table
  %e = stablehlo.constant dense<1.0e-10> : !table
  %f = stablehlo.add %r, %e : !table
  %v = stablehlo.divide %u, %f : !table
  %n = stablehlo.subtract %p, %v : !table
  return %n, %t : !table, !table
}
