// Long sums, and sums of dimensions apart from each other, are two kernels; others one.
// TRUTH XLA 0.10.2, compiled ahead of time
// WITH N=2048 M=256 K=256 A=0
// EXPECT H100-SXM: kernels 1
// WITH N=131072 M=128 K=128 A=0
// EXPECT H100-SXM: kernels 2
// WITH N=64 M=8192 K=64 A=1
// EXPECT H100-SXM: kernels 1
func.func @main(%x: tensor<$Nx$Mxf32>) -> tensor<$Kxf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [$A] : (tensor<$Nx$Mxf32>, tensor<f32>) -> tensor<$Kxf32>
  return %s : tensor<$Kxf32>
}
