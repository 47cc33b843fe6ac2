// Rows of bytes with a last dimension of one element lie as if they had none: arguments of 128 x 3072 and 3008 x 3072 bytes, no copy of the
// updates.
// TRUTH libtpu 0.0.52, compiled ahead of time: s8[128,3000,1]{0,1,2} and s8[3000,3000,1]{1,0,2}, two copies of the first
// EXPECT tpu-v5e: arguments <9800000, kernels(copy) 2, cycles <100000
func.func @main(%x: tensor<128x3000x1xi8>, %i: tensor<3000x1xi32>, %u: tensor<3000x3000x1xi8>) -> tensor<128x3000x1xi8> {
  %r = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%p: tensor<i8>, %q: tensor<i8>):
    %m = stablehlo.maximum %p, %q : tensor<i8>
    stablehlo.return %m : tensor<i8>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<128x3000x1xi8>, tensor<3000x1xi32>,
      tensor<3000x3000x1xi8>) -> tensor<128x3000x1xi8>
  return %r : tensor<128x3000x1xi8>
}
