// Images that the gradient of a filter lays out anew are not fetched ahead, the other operand is.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: peak 1605632 ±1%, cycles 6965 ±7%
func.func public @main(%x: tensor<32x8x8x256xbf16>, %g: tensor<32x4x4x64xbf16>) -> tensor<3x3x256x64xbf16> {
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[0, 1], [0, 1]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<32x8x8x256xbf16>, tensor<32x4x4x64xbf16>) -> tensor<3x3x256x64xbf16>
  return %0 : tensor<3x3x256x64xbf16>
}
