// A short array that several others are made of is stored if it is made of three of its size, not if rows and
// columns are repeated to that size, and however long the way to its only one is.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: arrays([300,160]) 1
func.func public @main(%x: tensor<300x160xf32>, %m: tensor<300xf32>, %r: tensor<300xf32>, %g: tensor<160xf32>) -> (tensor<300xf32>, tensor<160xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<300xf32>) -> tensor<300x160xf32>
  %b = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<300xf32>) -> tensor<300x160xf32>
  %c = stablehlo.broadcast_in_dim %g, dims = [1] : (tensor<160xf32>) -> tensor<300x160xf32>
  %d = stablehlo.subtract %x, %a : tensor<300x160xf32>
  %e = stablehlo.multiply %d, %b : tensor<300x160xf32>
  %y = stablehlo.multiply %e, %c : tensor<300x160xf32>
  %s = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [1] : (tensor<300x160xf32>, tensor<f32>) -> tensor<300xf32>
  %w = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<300xf32>) -> tensor<300x160xf32>
  %v = stablehlo.multiply %y, %w : tensor<300x160xf32>
  %t = stablehlo.reduce(%v init: %z) applies stablehlo.add across dimensions = [0] : (tensor<300x160xf32>, tensor<f32>) -> tensor<160xf32>
  return %s, %t : tensor<300xf32>, tensor<160xf32>
}
