// Where more on-chip memory is free, larger arrays are taken at once.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: cycles 55714 ±7%
// EXPECT tpu7x: cycles 38672 ±7%
func.func public @main(%a: tensor<640x2560xf32>, %b: tensor<2560x640xf32>, %c: tensor<640xf32>) -> (tensor<640x2560xf32>, tensor<2560x640xf32>, tensor<640xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %o = stablehlo.constant dense<1.0> : tensor<f32>
  %a2 = chlo.square %a : tensor<640x2560xf32> -> tensor<640x2560xf32>
  %as = stablehlo.reduce(%a2 init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<640x2560xf32>, tensor<f32>) -> tensor<f32>
  %b2 = chlo.square %b : tensor<2560x640xf32> -> tensor<2560x640xf32>
  %bs = stablehlo.reduce(%b2 init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<2560x640xf32>, tensor<f32>) -> tensor<f32>
  %c2 = chlo.square %c : tensor<640xf32> -> tensor<640xf32>
  %cs = stablehlo.reduce(%c2 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<640xf32>, tensor<f32>) -> tensor<f32>
  %s = stablehlo.add %as, %bs : tensor<f32>
  %t = stablehlo.add %s, %cs : tensor<f32>
  %r = stablehlo.rsqrt %t : tensor<f32>
  %m = stablehlo.minimum %o, %r : tensor<f32>
  %am = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> tensor<640x2560xf32>
  %bm = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> tensor<2560x640xf32>
  %cm = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<f32>) -> tensor<640xf32>
  %x = stablehlo.multiply %a, %am : tensor<640x2560xf32>
  %y = stablehlo.multiply %b, %bm : tensor<2560x640xf32>
  %w = stablehlo.multiply %c, %cm : tensor<640xf32>
  return %x, %y, %w : tensor<640x2560xf32>, tensor<2560x640xf32>, tensor<640xf32>
}
