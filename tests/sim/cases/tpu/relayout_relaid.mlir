// A convolution that lays its image out anew does so while the array works, and taps share the array all the same.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: cycles 37408 ±7%
// EXPECT tpu7x: cycles 34314 ±7%
func.func public @main(%x: tensor<32x24x24x64xbf16>, %w: tensor<3x3x64x96xbf16>) -> tensor<32x24x24x96xbf16> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<32x24x24x64xbf16>, tensor<3x3x64x96xbf16>) -> tensor<32x24x24x96xbf16>
  return %y : tensor<32x24x24x96xbf16>
}
