// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 44663 ±8%
func.func public @main(%x: tensor<2x24x40x64xbf16>, %w: tensor<3x3x64x64xbf16>) -> tensor<2x24x40x64xbf16> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x24x40x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<2x24x40x64xbf16>
  return %y : tensor<2x24x40x64xbf16>
}
