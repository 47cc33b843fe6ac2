// An image with each pixel repeated is stored before a convolution; so is its gradient, before its pixels are added
// up, and both lie as the convolution has them.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: peak 15875441 ±0.5%
// EXPECT tpu-v5e: peak 16022241 ±0.5%
!x = tensor<24x16x16x64xbf16>
!u = tensor<24x16x2x16x2x64xbf16>
!y = tensor<24x32x32x64xbf16>
!w = tensor<3x3x64x64xbf16>
func.func public @main(%x: !x, %w: !w) -> !x {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1, 3, 5] : (!x) -> !u
  %1 = stablehlo.reshape %0 : (!u) -> !y
  %2 = stablehlo.convolution(%1, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (!y, !w) -> !y
  %3 = stablehlo.add %2, %2 : !y
  %4 = stablehlo.reverse %w, dims = [0, 1] : !w
  %5 = stablehlo.convolution(%3, %4) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (!y, !w) -> !y
  %6 = stablehlo.reshape %5 : (!y) -> !u
  %z = stablehlo.constant dense<0.0> : tensor<bf16>
  %7 = stablehlo.reduce(%6 init: %z) applies stablehlo.add across dimensions = [2, 4] : (!u, tensor<bf16>) -> !x
  return %7 : !x
}
