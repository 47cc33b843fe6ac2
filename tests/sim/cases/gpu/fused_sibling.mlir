// A loop over what is summed up goes with the sum.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM,library: temp 65536 ±0.1%, kernels 2
func.func @main(%a: tensor<8192x256xf32>) -> (tensor<8192x256xf32>, tensor<256xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8192x256xf32>, tensor<f32>) -> tensor<256xf32>
  %e = stablehlo.tanh %a : tensor<8192x256xf32>
  return %e, %s : tensor<8192x256xf32>, tensor<256xf32>
}
