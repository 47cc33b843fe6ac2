// A filter's gradient is made with features in lanes, whatever order its type has (OIHW, as PyTorch writes it) and wherever the update says it
// (the slot's part comes first here); weight and slot are turned for it, and back.
// TRUTH libtpu 0.0.52, compiled ahead of time
// EXPECT tpu-v3: cycles 443532 ±9%, kernels(copy) 4, temp 9453568 ±1%
// EXPECT tpu-v5e: cycles 194662 ±3%, kernels(copy) 4
// EXPECT tpu-v6e: kernels(copy) 4
func.func public @main(%x: tensor<128x256x8x8xf32>, %dy: tensor<128x512x8x8xf32>, %w: tensor<512x256x3x3xf32>,
    %m: tensor<512x256x3x3xf32>) -> (tensor<512x256x3x3xf32>, tensor<512x256x3x3xf32>) {
  %0 = stablehlo.convolution(%x, %dy) dim_numbers = [f, b, 0, 1]x[i, o, 0, 1]->[0, 1, b, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<128x256x8x8xf32>, tensor<128x512x8x8xf32>) -> tensor<3x3x256x512xf32>
  %1 = stablehlo.transpose %0, dims = [3, 2, 0, 1] : (tensor<3x3x256x512xf32>) -> tensor<512x256x3x3xf32>
  %c = stablehlo.constant dense<0.9> : tensor<512x256x3x3xf32>
  %2 = stablehlo.multiply %m, %c : tensor<512x256x3x3xf32>
  %3 = stablehlo.add %2, %1 : tensor<512x256x3x3xf32>
  %c_0 = stablehlo.constant dense<0.01> : tensor<512x256x3x3xf32>
  %4 = stablehlo.multiply %3, %c_0 : tensor<512x256x3x3xf32>
  %5 = stablehlo.subtract %w, %4 : tensor<512x256x3x3xf32>
  return %5, %3 : tensor<512x256x3x3xf32>, tensor<512x256x3x3xf32>
}
