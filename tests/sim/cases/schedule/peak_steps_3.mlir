// A block that adds to its input evaluates; the step that adds to its weight trains, with no loss and nothing
// donated; what is multiplied with itself is no parameter. On every kind of chip.
// TRUTH by construction
// EXPECT tpu-v2: training 1, owner(0) input, owner(1) parameters
// EXPECT tpu-v5e: training 1, owner(0) input, owner(1) parameters
// EXPECT T4: training 1, owner(0) input, owner(1) parameters
// EXPECT H100-SXM: training 1, owner(0) input, owner(1) parameters
func.func public @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t = stablehlo.tanh %h : tensor<64x64xf32>
  %g = stablehlo.dot_general %x, %t, contracting_dims = [0] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = stablehlo.add %w, %g : tensor<64x64xf32>
  return %s : tensor<64x64xf32>
}
