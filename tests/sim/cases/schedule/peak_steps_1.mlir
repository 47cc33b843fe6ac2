// A block that adds to its input evaluates; the step that adds to its weight trains, with no loss and nothing
// donated; what is multiplied with itself is no parameter. On every kind of chip.
// TRUTH by construction
// EXPECT tpu-v2: owner(0) input, owner(1) parameters
// EXPECT tpu-v5e: owner(0) input, owner(1) parameters
// EXPECT T4: owner(0) input, owner(1) parameters
// EXPECT H100-SXM: owner(0) input, owner(1) parameters
func.func public @main(%x: tensor<16x64xf32>, %w: tensor<64x32xf32>) -> tensor<32x64xf32> {
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %g = stablehlo.dot_general %h, %x, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x64xf32>) -> tensor<32x64xf32>
  return %g : tensor<32x64xf32>
}
