// Where several dimensions are summed up, XLA rounds before; of one it adds up what was not rounded.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT A100-80GB,library: temp 21233936 ±0.1%, kernels 4
func.func @main(%a: tensor<3072x1152xbf16>, %b: tensor<3072x1152xbf16>, %w: tensor<1152x128xbf16>) -> (tensor<3072x128xbf16>, tensor<1152xbf16>) {
  %d = stablehlo.add %a, %b : tensor<3072x1152xbf16>
  %e = stablehlo.divide %d, %b : tensor<3072x1152xbf16>
  %z = stablehlo.constant dense<0.0> : tensor<bf16>
  %s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3072x1152xbf16>, tensor<bf16>) -> tensor<1152xbf16>
  %y = stablehlo.dot_general %e, %w, contracting_dims = [1] x [0] : (tensor<3072x1152xbf16>, tensor<1152x128xbf16>) -> tensor<3072x128xbf16>
  return %y, %s : tensor<3072x128xbf16>, tensor<1152xbf16>
}
