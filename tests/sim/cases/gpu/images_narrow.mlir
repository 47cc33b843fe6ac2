// Few columns are summed by few blocks: not in the kernel that computes them.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM: kernels 2
func.func @main(%x: tensor<2048x512xf32>, %y: tensor<2048x512xf32>) -> (tensor<2048x512xf32>, tensor<512xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.multiply %x, %y : tensor<2048x512xf32>
  %t = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2048x512xf32>, tensor<f32>) -> tensor<512xf32>
  return %s, %t : tensor<2048x512xf32>, tensor<512xf32>
}
