// What two sums in one kernel add up is not brought on chip before.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: peak 2638000 ±1%, cycles 8677 ±10%
func.func public @main(%x: tensor<1280x512xf32>) -> (tensor<1280xf32>, tensor<1280xf32>) {
  %l = stablehlo.constant dense<-1.0e30> : tensor<f32>
  %h = stablehlo.constant dense<1.0e30> : tensor<f32>
  %m = stablehlo.reduce(%x init: %l) applies stablehlo.maximum across dimensions = [1] : (tensor<1280x512xf32>, tensor<f32>) -> tensor<1280xf32>
  %n = stablehlo.reduce(%x init: %h) applies stablehlo.minimum across dimensions = [1] : (tensor<1280x512xf32>, tensor<f32>) -> tensor<1280xf32>
  return %m, %n : tensor<1280xf32>, tensor<1280xf32>
}
