// What a depthwise convolution wrote with the batch in sublanes, less its rows' sums, for a product and the
// gradient of its weight: stored where the product takes a side of the image into its tiles, made again where it
// takes the batch.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=8 M=28 K=96 A=384
// EXPECT tpu-v5e: peak 8954368 ±0.1%
// EXPECT tpu-v4: peak 8954368 ±0.1%
// WITH N=16 M=14 K=192 A=768
// EXPECT tpu-v5e: peak 9060864 ±0.1%
// WITH N=16 M=15 K=192 A=768
// EXPECT tpu-v4: peak 10256896 ±0.1%
// WITH N=32 M=14 K=128 A=512
// EXPECT tpu-v6e: peak 10158112 ±0.1%
!x = tensor<$Nx$Mx$Mx$Kxbf16>
!y = tensor<$Nx$Mx$Mx$Kxf32>
!r = tensor<$Nx$Mx$Mxf32>
!h = tensor<$Nx$Mx$Mx$Axbf16>
!g = tensor<$Nx$Mx$Mx$Axf32>
!k = tensor<7x7x1x$Kxbf16>
!w = tensor<$Kx$Axbf16>
!s = tensor<$Axf32>
func.func public @main(%x: !x, %k: !k, %w: !w) -> (!s, !w) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[3, 3], [3, 3]]} {batch_group_count = 1 : i64, feature_group_count = $K : i64} : (!x, !k) -> !x
  %1 = stablehlo.convert %0 : (!x) -> !y
  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [3] : (!y, tensor<f32>) -> !r
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2] : (!r) -> !y
  %4 = stablehlo.subtract %1, %3 : !y
  %5 = stablehlo.convert %4 : (!y) -> !x
  %6 = stablehlo.dot_general %5, %w, contracting_dims = [3] x [0] : (!x, !w) -> !h
  %7 = stablehlo.tanh %6 : !h
  %8 = stablehlo.convert %7 : (!h) -> !g
  %9 = stablehlo.reduce(%8 init: %z) applies stablehlo.add across dimensions = [0, 1, 2] : (!g, tensor<f32>) -> !s
  %10 = stablehlo.dot_general %5, %7, contracting_dims = [0, 1, 2] x [0, 1, 2] : (!x, !h) -> !w
  return %9, %10 : !s, !w
}
