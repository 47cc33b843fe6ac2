// An array is fetched for its sum where the program does nothing else, not even with the sum.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: peak 5554688 ±1%
func.func public @main(%a: tensor<700x900xf32>, %b: tensor<700x900xf32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.multiply %a, %b : tensor<700x900xf32>
  %s = stablehlo.reduce(%m init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<700x900xf32>, tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}
