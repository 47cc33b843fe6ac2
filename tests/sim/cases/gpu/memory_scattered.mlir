// Its gradient is added into a wide array in place, which is narrowed afterwards.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM,library: temp 805306368 ±0.001%
func.func @main(%x: tensor<4096x256xbf16>, %w: tensor<256x32768xbf16>, %i: tensor<4096x1xi32>, %u: tensor<4096xf32>) -> tensor<4096x256xbf16> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4096x256xbf16>, tensor<256x32768xbf16>) -> tensor<4096x32768xbf16>
  %f = stablehlo.convert %y : (tensor<4096x32768xbf16>) -> tensor<4096x32768xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4096x32768xf32>
  %s = "stablehlo.scatter"(%z, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %k = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %k : tensor<f32>
  }) : (tensor<4096x32768xf32>, tensor<4096x1xi32>, tensor<4096xf32>) -> tensor<4096x32768xf32>
  %t = stablehlo.add %f, %s : tensor<4096x32768xf32>
  %h = stablehlo.convert %t : (tensor<4096x32768xf32>) -> tensor<4096x32768xbf16>
  %o = stablehlo.dot_general %h, %w, contracting_dims = [1] x [1] : (tensor<4096x32768xbf16>, tensor<256x32768xbf16>) -> tensor<4096x256xbf16>
  return %o : tensor<4096x256xbf16>
}
