// A window that reaches further on one side than on the other reads an array that has the edge: 57 x 57.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM: kernels 3, kernels(pad) 1, temp 2642688 ±0.1%
func.func @main(%x: tensor<6x56x56x64xbf16>, %w: tensor<3x3x64x128xbf16>) -> tensor<6x28x28x128xbf16> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<6x56x56x64xbf16>, tensor<3x3x64x128xbf16>) -> tensor<6x28x28x128xbf16>
  return %y : tensor<6x28x28x128xbf16>
}
