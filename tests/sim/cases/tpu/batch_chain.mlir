// The second convolution takes the parts as they are, and makes its halo of slices.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 55308 ±8%, kernels(convolution) 2
func.func public @main(%x: tensor<2x24x40x64xbf16>, %w: tensor<3x3x64x64xbf16>, %v: tensor<3x3x64x64xbf16>) -> tensor<2x24x40x64xbf16> {
  %z = stablehlo.constant dense<0.0> : tensor<2x24x40x64xbf16>
  %a = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x24x40x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<2x24x40x64xbf16>
  %r = stablehlo.maximum %a, %z : tensor<2x24x40x64xbf16>
  %y = stablehlo.convolution(%r, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x24x40x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<2x24x40x64xbf16>
  return %y : tensor<2x24x40x64xbf16>
}
