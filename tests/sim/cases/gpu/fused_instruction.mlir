// Products of bf16 are an instruction on an H100; an A100 makes them in f32, and what is between is not rounded.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM,library: temp 3211264 ±0.1%, kernels 2
// EXPECT A100-80GB,library: temp 6422528 ±0.1%, kernels 2
func.func @main(%a: tensor<3136x512xbf16>, %b: tensor<3136x512xbf16>) -> tensor<512xf32> {
  %m = stablehlo.multiply %a, %b : tensor<3136x512xbf16>
  %c = stablehlo.convert %m : (tensor<3136x512xbf16>) -> tensor<3136x512xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%c init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3136x512xf32>, tensor<f32>) -> tensor<512xf32>
  return %s : tensor<512xf32>
}
