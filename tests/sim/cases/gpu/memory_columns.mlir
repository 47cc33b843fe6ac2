// Few columns are few blocks of threads: those do not compute what they sum up.
// TRUTH XLA 0.10.2, compiled ahead of time
// WITH N=512
// EXPECT H100-SXM: kernels 2, temp 6422528 ±0.001%
// WITH N=8192
// EXPECT H100-SXM: kernels 1, temp 0
func.func @main(%x: tensor<3136x$Nxbf16>, %y: tensor<3136x$Nxbf16>, %b: tensor<$Nxf32>) -> tensor<$Nxf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %xf = stablehlo.convert %x : (tensor<3136x$Nxbf16>) -> tensor<3136x$Nxf32>
  %yf = stablehlo.convert %y : (tensor<3136x$Nxbf16>) -> tensor<3136x$Nxf32>
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<$Nxf32>) -> tensor<3136x$Nxf32>
  %d = stablehlo.subtract %xf, %bb : tensor<3136x$Nxf32>
  %q = stablehlo.multiply %d, %yf : tensor<3136x$Nxf32>
  %t = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3136x$Nxf32>, tensor<f32>) -> tensor<$Nxf32>
  return %t : tensor<$Nxf32>
}
