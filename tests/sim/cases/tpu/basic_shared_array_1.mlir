// Taps of few features share the array forwards, where images lie in sublanes and the filter's output features in
// lanes, and not otherwise; in a gradient that lies turned each pixel of the window has rows of its own, in others
// the images of all taps fill it without gaps.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=32 M=14 K=64 T=bf16 A=5 B=192 C=2
// EXPECT tpu-v5e: cycles 58514 ±6%
// WITH N=16 M=28 K=320 T=f32 A=3 B=96 C=1
// EXPECT tpu-v5e: cycles 94627 ±6%
func.func @main(%x: tensor<$Nx$Mx$Mx$Kx$T>, %w: tensor<$Ax$Ax$Kx$Bx$T>) -> tensor<$Nx$Mx$Mx$Bx$T> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[$C, $C], [$C, $C]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<$Nx$Mx$Mx$Kx$T>, tensor<$Ax$Ax$Kx$Bx$T>) -> tensor<$Nx$Mx$Mx$Bx$T>
  return %0 : tensor<$Nx$Mx$Mx$Bx$T>
}
