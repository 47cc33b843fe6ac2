// Images as rows of a product: in tiles of 16 rows the batch of 8 is padded more than sides of 28.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: peak 9085952 ±1%
// EXPECT tpu-v5e: peak 9232896 ±1%
!x = tensor<8x28x28x96xbf16>
!h = tensor<8x28x28x384xbf16>
!f = tensor<8x28x28x96xf32>
!k = tensor<3x3x96x96xbf16>
!w = tensor<96x384xbf16>
!v = tensor<384x96xbf16>
func.func public @main(%x: !x, %k: !k, %w: !w, %v: !v) -> tensor<96xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (!x, !k) -> !x
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [3] x [0] : (!x, !w) -> !h
  %2 = stablehlo.tanh %1 : !h
  %3 = stablehlo.dot_general %2, %v, contracting_dims = [3] x [0] : (!h, !v) -> !x
  %4 = stablehlo.convert %3 : (!x) -> !f
  %5 = stablehlo.reduce(%4 init: %z) applies stablehlo.add across dimensions = [0, 1, 2] : (!f, tensor<f32>) -> tensor<96xf32>
  return %5 : tensor<96xf32>
}
