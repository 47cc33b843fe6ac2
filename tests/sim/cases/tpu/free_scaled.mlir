// One filter of a single tap a channel multiplies.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 2389 ±10%, peak 262656 ±3%
// EXPECT tpu7x: cycles 2471 ±10%, peak 263168 ±3%
func.func public @main(%x: tensor<128x4x4x16xf32>, %w: tensor<1x1x1x16xf32>) -> tensor<128x4x4x16xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 16 : i64} : (tensor<128x4x4x16xf32>, tensor<1x1x1x16xf32>) -> tensor<128x4x4x16xf32>
  return %y : tensor<128x4x4x16xf32>
}
