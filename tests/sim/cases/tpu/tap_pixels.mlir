// Each pixel of a spread image loads its weights: as long as their shorter side, once for each 128 of the features
// that are contracted, or 256 where as many come out.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=128 M=128 K=16
// EXPECT tpu-v6e: cycles 17615 ±3%
// WITH N=128 M=256 K=16
// EXPECT tpu-v6e: cycles 27146 ±3%
// EXPECT tpu-v5p: cycles 17323 ±8%
// WITH N=256 M=256 K=16
// EXPECT tpu-v6e: cycles 30891 ±3%
// WITH N=64 M=256 K=8
// EXPECT tpu7x: cycles 18790 ±3%
// WITH N=256 M=512 K=32
// EXPECT tpu-v2: cycles 640444 ±3%
// WITH N=128 M=128 K=64
// EXPECT tpu-v5e: cycles 63296 ±8%
func.func public @main(%w: tensor<3x3x$Nx$Mxbf16>, %g: tensor<$Kx8x8x$Mxbf16>) -> tensor<$Kx16x16x$Nxbf16> {
  %r = stablehlo.reverse %w, dims = [0, 1] : tensor<3x3x$Nx$Mxbf16>
  %y = stablehlo.convolution(%g, %r) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<$Kx8x8x$Mxbf16>, tensor<3x3x$Nx$Mxbf16>) -> tensor<$Kx16x16x$Nxbf16>
  return %y : tensor<$Kx16x16x$Nxbf16>
}
