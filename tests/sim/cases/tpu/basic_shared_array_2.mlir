// Taps of few features share the array forwards, where images lie in sublanes and the filter's output features in
// lanes, and not otherwise; in a gradient that lies turned each pixel of the window has rows of its own, in others
// the images of all taps fill it without gaps.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=40 M=18 K=160 A=32
// EXPECT tpu-v5p: cycles 29337 ±6%
// EXPECT tpu-v5e: cycles 53186 ±6%
// EXPECT tpu-v6e: cycles 36505 ±6%
// WITH N=24 M=14 K=384 A=384
// EXPECT tpu-v2: cycles 398824 ±6%
// EXPECT tpu-v5e: cycles 106055 ±6%
func.func @main(%x: tensor<$Nx$Mx$Mx$Kxbf16>, %w: tensor<$Nx$Mx$Mx$Axbf16>) -> tensor<3x3x$Kx$Axbf16> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<$Nx$Mx$Mx$Kxbf16>, tensor<$Nx$Mx$Mx$Axbf16>) -> tensor<3x3x$Kx$Axbf16>
  return %0 : tensor<3x3x$Kx$Axbf16>
}
