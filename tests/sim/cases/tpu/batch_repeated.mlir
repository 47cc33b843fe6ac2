// What is repeated over an image is rounded before, and goes with its parts.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 61494 ±6%
func.func public @main(%x: tensor<2x24x40x64xbf16>, %w: tensor<3x3x64x64xbf16>, %v: tensor<3x3x64x64xbf16>, %g: tensor<2x64xf32>) -> tensor<2x24x40x64xbf16> {
  %a = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x24x40x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<2x24x40x64xbf16>
  %r = stablehlo.broadcast_in_dim %g, dims = [0, 3] : (tensor<2x64xf32>) -> tensor<2x24x40x64xf32>
  %h = stablehlo.convert %r : (tensor<2x24x40x64xf32>) -> tensor<2x24x40x64xbf16>
  %z = stablehlo.constant dense<0.0> : tensor<2x24x40x64xbf16>
  %c = stablehlo.compare GT, %a, %z, FLOAT : (tensor<2x24x40x64xbf16>, tensor<2x24x40x64xbf16>) -> tensor<2x24x40x64xi1>
  %s = stablehlo.select %c, %h, %z : tensor<2x24x40x64xi1>, tensor<2x24x40x64xbf16>
  %y = stablehlo.convolution(%s, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x24x40x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<2x24x40x64xbf16>
  return %y : tensor<2x24x40x64xbf16>
}
