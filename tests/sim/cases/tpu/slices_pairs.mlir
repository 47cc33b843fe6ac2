// Pairs beside each other are added up: rows come into lanes before the others are split.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: peak 3633664 ±1%
// EXPECT tpu-v6e: peak 3633664 ±1%
func.func public @main(%a: tensor<1000x256xf32>) -> tensor<1000x128xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reshape %a : (tensor<1000x256xf32>) -> tensor<1000x128x2xf32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [2] : (tensor<1000x128x2xf32>, tensor<f32>) -> tensor<1000x128xf32>
  return %1 : tensor<1000x128xf32>
}
