// An argument is rounded in the order in which it lies, before it is turned.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles(convert) 4900..5400
func.func public @main(%x: tensor<8x64x64x3xf32>, %w: tensor<4x4x3x48xbf16>, %g: tensor<8x32x32x48xbf16>) -> (tensor<8x32x32x48xbf16>, tensor<4x4x3x48xbf16>) {
  %r = stablehlo.convert %x : (tensor<8x64x64x3xf32>) -> tensor<8x64x64x3xbf16>
  %y = stablehlo.convolution(%r, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x64x64x3xbf16>, tensor<4x4x3x48xbf16>) -> tensor<8x32x32x48xbf16>
  %d = stablehlo.convolution(%r, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x64x64x3xbf16>, tensor<8x32x32x48xbf16>) -> tensor<4x4x3x48xbf16>
  return %y, %d : tensor<8x32x32x48xbf16>, tensor<4x4x3x48xbf16>
}
