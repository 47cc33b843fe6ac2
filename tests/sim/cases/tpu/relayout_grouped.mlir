// A convolution of two groups has a dimension of the groups, which a copy puts beside the features.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5p: cycles 60529 ±7%
// EXPECT tpu7x: cycles 34240 ±7%
func.func public @main(%x: tensor<16x20x20x16xbf16>, %w: tensor<3x3x8x32xbf16>) -> tensor<16x20x20x32xbf16> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<16x20x20x16xbf16>, tensor<3x3x8x32xbf16>) -> tensor<16x20x20x32xbf16>
  return %y : tensor<16x20x20x32xbf16>
}
