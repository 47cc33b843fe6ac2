// Long sums are cut where least is left over, longer than they are if need be: 18144 as 126 of 144, 50257 as 140 of
// 359.
// TRUTH XLA 0.10.2, compiled ahead of time
// WITH N=18144 M=256 K=256 A=0
// EXPECT H100-SXM,library: temp 129024 ±0.1%, kernels 2
// WITH N=64 M=50257 K=64 A=1
// EXPECT H100-SXM,library: temp 35840 ±0.1%, kernels 2
func.func @main(%a: tensor<$Nx$Mxf32>) -> tensor<$Kxf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [$A] : (tensor<$Nx$Mxf32>, tensor<f32>) -> tensor<$Kxf32>
  return %s : tensor<$Kxf32>
}
