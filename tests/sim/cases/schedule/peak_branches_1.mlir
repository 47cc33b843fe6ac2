// A branch may copy what is made outside of it into another order; and the branch that a constant chooses is part
// of the program.
// TRUTH by construction
// EXPECT tpu-v5e: runs(gather) 1
func.func @main(%i: tensor<i32>, %x: tensor<2000x2x100xf32>, %w: tensor<100x100xf32>, %v: tensor<100x2xf32>, %k: tensor<2x2xi32>) -> tensor<2000x2xf32> {
  %a0 = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>
  %a1 = stablehlo.dot_general %a0, %w, contracting_dims = [2] x [0] : (tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>
  %a2 = stablehlo.dot_general %a1, %w, contracting_dims = [2] x [0] : (tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>
  %a3 = stablehlo.dot_general %a2, %w, contracting_dims = [2] x [0] : (tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>
  %a4 = stablehlo.dot_general %a3, %w, contracting_dims = [2] x [0] : (tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>
  %a5 = stablehlo.dot_general %a4, %w, contracting_dims = [2] x [0] : (tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>
  %a6 = stablehlo.dot_general %a5, %w, contracting_dims = [2] x [0] : (tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>
  %a7 = stablehlo.dot_general %a6, %w, contracting_dims = [2] x [0] : (tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>
  %a8 = stablehlo.dot_general %a7, %w, contracting_dims = [2] x [0] : (tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>
  %a9 = stablehlo.dot_general %a8, %w, contracting_dims = [2] x [0] : (tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>
  %a10 = stablehlo.dot_general %a9, %w, contracting_dims = [2] x [0] : (tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>
  %a11 = stablehlo.dot_general %a10, %w, contracting_dims = [2] x [0] : (tensor<2000x2x100xf32>, tensor<100x100xf32>) -> tensor<2000x2x100xf32>
  %t = stablehlo.dot_general %a11, %v, contracting_dims = [2] x [0] : (tensor<2000x2x100xf32>, tensor<100x2xf32>) -> tensor<2000x2x2xf32>
  %u = stablehlo.transpose %t, dims = [0, 2, 1] : (tensor<2000x2x2xf32>) -> tensor<2000x2x2xf32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.case"(%i) ({
    %g = "stablehlo.gather"(%u, %k) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1, 2], start_index_map = [1, 2], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2000, 1, 1>}> : (tensor<2000x2x2xf32>, tensor<2x2xi32>) -> tensor<2000x2xf32>
    stablehlo.return %g : tensor<2000x2xf32>
  }, {
    %s = stablehlo.slice %u [0:2000, 0:1, 0:2] : (tensor<2000x2x2xf32>) -> tensor<2000x1x2xf32>
    %r = stablehlo.reshape %s : (tensor<2000x1x2xf32>) -> tensor<2000x2xf32>
    stablehlo.return %r : tensor<2000x2xf32>
  }) : (tensor<i32>) -> tensor<2000x2xf32>
  return %0 : tensor<2000x2xf32>
}
