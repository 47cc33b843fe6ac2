// Two images side by side, an argument one of them, for a convolution and the gradient of its filter: they are put
// together in both.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: peak 20420608 ±0.5%
// EXPECT tpu-v5e: peak 33895424 ±0.5%
// EXPECT tpu-v5p: peak 27341344 ±0.5%
func.func public @main(%x: tensor<64x20x20x80xbf16>, %b: tensor<64x20x20x80xbf16>, %w: tensor<1x1x80x80xbf16>, %v: tensor<3x3x160x80xbf16>) -> (tensor<80xbf16>, tensor<3x3x160x80xbf16>) {
  %p = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<64x20x20x80xbf16>, tensor<1x1x80x80xbf16>) -> tensor<64x20x20x80xbf16>
  %c = stablehlo.concatenate %p, %b, dim = 3 : (tensor<64x20x20x80xbf16>, tensor<64x20x20x80xbf16>) -> tensor<64x20x20x160xbf16>
  %y = stablehlo.convolution(%c, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<64x20x20x160xbf16>, tensor<3x3x160x80xbf16>) -> tensor<64x20x20x80xbf16>
  %z = stablehlo.constant dense<0.0> : tensor<bf16>
  %r = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<64x20x20x80xbf16>, tensor<bf16>) -> tensor<80xbf16>
  %g = stablehlo.convolution(%c, %b) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<64x20x20x160xbf16>, tensor<64x20x20x80xbf16>) -> tensor<3x3x160x80xbf16>
  return %r, %g : tensor<80xbf16>, tensor<3x3x160x80xbf16>
}
