// Long sums, and sums of dimensions apart from each other, are two kernels; others one.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM: kernels 2
func.func @main(%x: tensor<20x10x96x64xf32>) -> tensor<10x64xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0, 2] : (tensor<20x10x96x64xf32>, tensor<f32>) -> tensor<10x64xf32>
  return %s : tensor<10x64xf32>
}
