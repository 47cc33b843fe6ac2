// Gradients of filters: images in lanes are laid down before an array of 256 takes them; on two cores that share a
// memory each pixel of the window streams for itself.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=96 M=20 K=48 A=96
// EXPECT tpu-v6e: cycles 22891 ±7%
// WITH N=256 M=28 K=64 A=32
// EXPECT tpu-v4: cycles 81441 ±7%
func.func public @main(%x: tensor<$Nx$Mx$Mx$Kxbf16>, %g: tensor<$Nx$Mx$Mx$Axbf16>) -> tensor<3x3x$Kx$Axbf16> {
  %w = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<$Nx$Mx$Mx$Kxbf16>, tensor<$Nx$Mx$Mx$Axbf16>) -> tensor<3x3x$Kx$Axbf16>
  return %w : tensor<3x3x$Kx$Axbf16>
}
