// On v6e, too, what only moves narrow elements packs them.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: cycles 30760 ±16%
func.func public @main(%x: tensor<1x48x48x128xbf16>, %w: tensor<3x3x128x128xbf16>) -> tensor<1x48x48x128xbf16> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x48x48x128xbf16>, tensor<3x3x128x128xbf16>) -> tensor<1x48x48x128xbf16>
  return %y : tensor<1x48x48x128xbf16>
}
