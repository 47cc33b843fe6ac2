// What is left of each image's mean is stored when several read it: nobody reads the mean, repeated over the image,
// again.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: arrays(subtract) 1
func.func public @main(%x: tensor<2x24x40x64xbf16>, %w: tensor<3x3x64x64xbf16>, %v: tensor<3x3x64x64xbf16>) -> tensor<2x24x40x64xbf16> {
  %a = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x24x40x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<2x24x40x64xbf16>
  %f = stablehlo.convert %a : (tensor<2x24x40x64xbf16>) -> tensor<2x24x40x64xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%f init: %z) applies stablehlo.add across dimensions = [1, 2] : (tensor<2x24x40x64xf32>, tensor<f32>) -> tensor<2x64xf32>
  %r = stablehlo.broadcast_in_dim %s, dims = [0, 3] : (tensor<2x64xf32>) -> tensor<2x24x40x64xf32>
  %d = stablehlo.subtract %f, %r : tensor<2x24x40x64xf32>
  %q = stablehlo.multiply %d, %d : tensor<2x24x40x64xf32>
  %t = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [1, 2] : (tensor<2x24x40x64xf32>, tensor<f32>) -> tensor<2x64xf32>
  %u = stablehlo.broadcast_in_dim %t, dims = [0, 3] : (tensor<2x64xf32>) -> tensor<2x24x40x64xf32>
  %h = stablehlo.multiply %d, %u : tensor<2x24x40x64xf32>
  %i = stablehlo.convert %h : (tensor<2x24x40x64xf32>) -> tensor<2x24x40x64xbf16>
  %y = stablehlo.convolution(%i, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x24x40x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<2x24x40x64xbf16>
  return %y : tensor<2x24x40x64xbf16>
}
