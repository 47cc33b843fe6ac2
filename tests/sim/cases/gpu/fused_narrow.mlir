// A block sums up more columns of narrow elements at once, so that there are fewer: of f32, what is made of them is
// read faster than it is computed.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM,library: temp 6422528 ±0.1%, kernels 2
func.func @main(%a: tensor<3136x512xbf16>, %v: tensor<512xf32>) -> tensor<512xf32> {
  %c = stablehlo.convert %a : (tensor<3136x512xbf16>) -> tensor<3136x512xf32>
  %b = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<512xf32>) -> tensor<3136x512xf32>
  %m = stablehlo.multiply %c, %b : tensor<3136x512xf32>
  %n = stablehlo.negate %m : tensor<3136x512xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%n init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3136x512xf32>, tensor<f32>) -> tensor<512xf32>
  return %s : tensor<512xf32>
}
