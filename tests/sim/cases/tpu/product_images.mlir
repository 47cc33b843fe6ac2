// Results whose images lie in lanes: filters stream past the images of one pixel at a time.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 57508 ±2%
// EXPECT tpu-v5p: cycles 31730 ±2%
// EXPECT tpu-v6e: cycles 59215 ±2%
// EXPECT tpu7x: cycles 58210 ±2%
func.func public @main(%w: tensor<3x3x32x64xf32>, %g: tensor<64x26x26x64xf32>) -> tensor<64x26x26x32xf32> {
  %x = stablehlo.convolution(%g, %w) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]], reverse = [true, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<64x26x26x64xf32>, tensor<3x3x32x64xf32>) -> tensor<64x26x26x32xf32>
  return %x : tensor<64x26x26x32xf32>
}
