// A mean over groups of channels, taken away between: the reshapes that it is written with do not put the images
// together again.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 69281 ±4%
func.func public @main(%x: tensor<2x24x40x64xbf16>, %w: tensor<3x3x64x64xbf16>, %v: tensor<3x3x64x64xbf16>) -> tensor<2x24x40x64xbf16> {
  %a = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x24x40x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<2x24x40x64xbf16>
  %f = stablehlo.convert %a : (tensor<2x24x40x64xbf16>) -> tensor<2x24x40x64xf32>
  %g = stablehlo.reshape %f : (tensor<2x24x40x64xf32>) -> tensor<2x24x40x8x8xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%g init: %z) applies stablehlo.add across dimensions = [1, 2, 4] : (tensor<2x24x40x8x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  %n = stablehlo.constant dense<7680.0> : tensor<2x8xf32>
  %m = stablehlo.divide %s, %n : tensor<2x8xf32>
  %r = stablehlo.broadcast_in_dim %m, dims = [0, 3] : (tensor<2x8xf32>) -> tensor<2x24x40x8x8xf32>
  %d = stablehlo.subtract %g, %r : tensor<2x24x40x8x8xf32>
  %h = stablehlo.reshape %d : (tensor<2x24x40x8x8xf32>) -> tensor<2x24x40x64xf32>
  %i = stablehlo.convert %h : (tensor<2x24x40x64xf32>) -> tensor<2x24x40x64xbf16>
  %y = stablehlo.convolution(%i, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x24x40x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<2x24x40x64xbf16>
  return %y : tensor<2x24x40x64xbf16>
}
