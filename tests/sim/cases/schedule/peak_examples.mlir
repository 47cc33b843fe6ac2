// The examples of a step are its input, though the gradient of the weights takes them as the right side of a
// product; a frozen weight is none.
// TRUTH by construction
// EXPECT tpu-v2: training 1, owner(0) parameters, owner(1) input, owner(2) parameters, owner(3) input, owner(4) input
// EXPECT tpu-v5e: training 1, owner(0) parameters, owner(1) input, owner(2) parameters, owner(3) input, owner(4) input
// EXPECT T4: training 1, owner(0) parameters, owner(1) input, owner(2) parameters, owner(3) input, owner(4) input
func.func public @main(%w: tensor<64x32xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<16x96xf32>, %f: tensor<96x64xf32>, %d: tensor<16x64xf32>, %t: tensor<16x32xf32>) -> tensor<64x32xf32> {
  %h = stablehlo.dot_general %x, %f, contracting_dims = [1] x [0] : (tensor<16x96xf32>, tensor<96x64xf32>) -> tensor<16x64xf32>
  %s = stablehlo.dot_general %d, %w, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %u = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %v = stablehlo.add %s, %u : tensor<16x32xf32>
  %e = stablehlo.subtract %v, %t : tensor<16x32xf32>
  %g = stablehlo.dot_general %e, %d, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  %k = stablehlo.transpose %g, dims = [1, 0] : (tensor<32x64xf32>) -> tensor<64x32xf32>
  %n = stablehlo.subtract %w, %k : tensor<64x32xf32>
  return %n : tensor<64x32xf32>
}
