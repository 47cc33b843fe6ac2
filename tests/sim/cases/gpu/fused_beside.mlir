// Whoever reads a concatenation puts it together.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT A100-80GB,library: temp <1024, kernels 2
func.func @main(%a: tensor<4096x64xf32>, %b: tensor<4096x64xf32>) -> (tensor<4096x128xf32>, tensor<128xf32>) {
  %c = stablehlo.concatenate %a, %b, dim = 1 : (tensor<4096x64xf32>, tensor<4096x64xf32>) -> tensor<4096x128xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%c init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4096x128xf32>, tensor<f32>) -> tensor<128xf32>
  %e = stablehlo.negate %c : tensor<4096x128xf32>
  return %e, %s : tensor<4096x128xf32>, tensor<128xf32>
}
