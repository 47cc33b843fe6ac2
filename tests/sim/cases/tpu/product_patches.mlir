// The gradient of images that are cut into patches: kernel and image the other way round.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 59964251 ±10%
// EXPECT tpu-v3: cycles 33863321 ±10%
// EXPECT tpu-v5e: cycles 15237146 ±10%
// EXPECT tpu-v5p: cycles 7945984 ±10%
func.func public @main(%w: tensor<16x16x3x192xbf16>, %y: tensor<8x14x14x192xbf16>) -> tensor<8x224x224x3xbf16> {
  %0 = stablehlo.reverse %w, dims = [0, 1] : tensor<16x16x3x192xbf16>
  %1 = stablehlo.convolution(%y, %0) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[15, 15], [15, 15]], lhs_dilate = [16, 16], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x14x14x192xbf16>, tensor<16x16x3x192xbf16>) -> tensor<8x224x224x3xbf16>
  return %1 : tensor<8x224x224x3xbf16>
}
