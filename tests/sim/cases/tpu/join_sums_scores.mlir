// Scores that are summed up row by row lie with the rows in lanes, where either way pads alike.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: arrays([4,3,64,64]{2,3,1,0}) >0
func.func public @main(%q: tensor<4x64x3x32xf32>, %k: tensor<4x64x3x32xf32>) -> (tensor<4x3x64xf32>, tensor<f32>) {
  %o = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<4x64x3x32xf32>, tensor<4x64x3x32xf32>) -> tensor<4x3x64x64xf32>
  %r = stablehlo.reduce(%s init: %o) applies stablehlo.add across dimensions = [3] : (tensor<4x3x64x64xf32>, tensor<f32>) -> tensor<4x3x64xf32>
  %b = stablehlo.broadcast_in_dim %r, dims = [0, 1, 2] : (tensor<4x3x64xf32>) -> tensor<4x3x64x64xf32>
  %e = stablehlo.multiply %s, %b : tensor<4x3x64x64xf32>
  %v = stablehlo.reduce(%e init: %o) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<4x3x64x64xf32>, tensor<f32>) -> tensor<f32>
  return %r, %v : tensor<4x3x64xf32>, tensor<f32>
}
