// An array is fetched for its sum where the program does nothing else, not even with the sum.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: peak 2779136 ±1%
func.func public @main(%a: tensor<700x900xf32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %q = stablehlo.constant dense<0.3> : tensor<f32>
  %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<700x900xf32>, tensor<f32>) -> tensor<f32>
  %m = stablehlo.multiply %s, %q : tensor<f32>
  return %m : tensor<f32>
}
