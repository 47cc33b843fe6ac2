// Pixels of a spread image take other taps each, so that few images load all weights for few rows.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 267480 ±8%
// EXPECT tpu-v3: cycles 152379 ±8%
// EXPECT tpu-v4: cycles 50733 ±8%
// EXPECT tpu-v5e: cycles 49484 ±8%
// EXPECT tpu-v5p: cycles 30167 ±8%
// EXPECT tpu-v6e: cycles 44999 ±8%
// EXPECT tpu7x: cycles 45736 ±8%
func.func public @main(%x: tensor<8x20x20x64xbf16>, %w: tensor<3x3x64x96xbf16>) -> tensor<8x40x40x96xbf16> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x20x20x64xbf16>, tensor<3x3x64x96xbf16>) -> tensor<8x40x40x96xbf16>
  return %y : tensor<8x40x40x96xbf16>
}
