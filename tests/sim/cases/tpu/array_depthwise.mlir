// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 40899 ±10%
// EXPECT tpu-v4: cycles 20790 ±10%
func.func public @main(%x: tensor<64x16x16x16xf32>, %w: tensor<3x3x1x16xf32>) -> tensor<64x16x16x16xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 16 : i64} : (tensor<64x16x16x16xf32>, tensor<3x3x1x16xf32>) -> tensor<64x16x16x16xf32>
  return %y : tensor<64x16x16x16xf32>
}
