// With 128 features or more on both sides each tap has rows of an array of 256 for itself; columns that are left
// over hold two. With fewer that come in, or other numbers that come out, taps share rows.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=128 M=256
// EXPECT tpu7x: cycles 39666 ±2%
// EXPECT tpu-v6e: cycles 41396 ±2%
// EXPECT tpu-v5e: cycles 68192 ±3%
// WITH N=256 M=256
// EXPECT tpu7x: cycles 39970 ±2%
// WITH N=256 M=128
// EXPECT tpu7x: cycles 25074 ±2%
// WITH N=128 M=384
// EXPECT tpu7x: cycles 56740 ±2%
// WITH N=128 M=192
// EXPECT tpu7x: cycles 27046 ±2%
// WITH N=96 M=256
// EXPECT tpu7x: cycles 30182 ±2%
func.func public @main(%x: tensor<16x28x28x$Nxbf16>, %w: tensor<3x3x$Nx$Mxbf16>) -> tensor<16x28x28x$Mxbf16> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<16x28x28x$Nxbf16>, tensor<3x3x$Nx$Mxbf16>) -> tensor<16x28x28x$Mxbf16>
  return %y : tensor<16x28x28x$Mxbf16>
}
