// Forwards, backwards to the filter and to the image: the filter is turned once for two of them, and its gradient
// back; images are not. The turned filters are all that is needed beside arguments and results.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM: kernels 5, kernels(transpose) 2, temp <147457
func.func @main(%x: tensor<2x40x40x64xbf16>, %w: tensor<3x3x64x64xbf16>, %g: tensor<2x40x40x64xbf16>) -> (tensor<2x40x40x64xbf16>, tensor<3x3x64x64xbf16>, tensor<2x40x40x64xbf16>) {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x40x40x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<2x40x40x64xbf16>
  %dw = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x40x40x64xbf16>, tensor<2x40x40x64xbf16>) -> tensor<3x3x64x64xbf16>
  %v = stablehlo.reverse %w, dims = [0, 1] : tensor<3x3x64x64xbf16>
  %dx = stablehlo.convolution(%g, %v) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x40x40x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<2x40x40x64xbf16>
  return %y, %dw, %dx : tensor<2x40x40x64xbf16>, tensor<3x3x64x64xbf16>, tensor<2x40x40x64xbf16>
}
