// An image repeated to twice its size between two convolutions: its pixels lie in tiles of two rows while they are
// repeated, which are put together by an operation of its own.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 271365 ±14%
func.func public @main(%x: tensor<4x24x24x64xbf16>, %w: tensor<3x3x64x64xbf16>) -> tensor<4x48x48x64xbf16> {
  %a = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x24x24x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<4x24x24x64xbf16>
  %b = stablehlo.broadcast_in_dim %a, dims = [0, 1, 3, 5] : (tensor<4x24x24x64xbf16>) -> tensor<4x24x2x24x2x64xbf16>
  %u = stablehlo.reshape %b : (tensor<4x24x2x24x2x64xbf16>) -> tensor<4x48x48x64xbf16>
  %y = stablehlo.convolution(%u, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x48x48x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<4x48x48x64xbf16>
  return %y : tensor<4x48x48x64xbf16>
}
