// A filter's gradient that is the program's result, and nothing else, is written in the order of the result: no copy.
// TRUTH libtpu 0.0.52, compiled ahead of time
// EXPECT tpu-v5e: cycles 161388 ±4%, kernels(copy) 0
func.func public @main(%x: tensor<128x256x8x8xf32>, %dy: tensor<128x512x8x8xf32>, %w: tensor<512x256x3x3xf32>) -> (tensor<512x256x3x3xf32>) {
  %0 = stablehlo.convolution(%x, %dy) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[0, 1, b, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<128x256x8x8xf32>, tensor<128x512x8x8xf32>) -> tensor<3x3x256x512xf32>
  %1 = stablehlo.transpose %0, dims = [3, 2, 0, 1] : (tensor<3x3x256x512xf32>) -> tensor<512x256x3x3xf32>
  return %1 : tensor<512x256x3x3xf32>
}
