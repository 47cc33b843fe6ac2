// What is summed once, for another kernel, is read where it lies.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: cycles 17741 ±7%
func.func public @main(%a: tensor<512x3000xf32>) -> tensor<512xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<512x3000xf32>, tensor<f32>) -> tensor<512xf32>
  %n = stablehlo.constant dense<3000.0> : tensor<512xf32>
  %m = stablehlo.divide %s, %n : tensor<512xf32>
  return %m : tensor<512xf32>
}
