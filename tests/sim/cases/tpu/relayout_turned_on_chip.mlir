// On chip the transpose unit takes narrow elements as it takes wide ones.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu7x: cycles 10549 ±7%
func.func public @main(%x: tensor<8x1200x48xbf16>, %g: tensor<8x600x96xbf16>) -> tensor<3x48x96xbf16> {
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f], window = {pad = [[0, 1]], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x1200x48xbf16>, tensor<8x600x96xbf16>) -> tensor<3x48x96xbf16>
  return %0 : tensor<3x48x96xbf16>
}
