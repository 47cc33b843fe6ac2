// A gate made of two slices of what a convolution wrote, for two others: each makes it again (on v2, too, where the model stores it).
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: peak 37786624 ±5%
!i = tensor<64x20x20x80xbf16>
!j = tensor<64x20x20x160xbf16>
!w = tensor<1x1x80x80xbf16>
!v = tensor<1x1x80x160xbf16>
func.func public @main(%x: !i, %d: !i, %w: !w, %v: !v) -> (tensor<80xbf16>, !w) {
  %h = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (!i, !v) -> !j
  %a = stablehlo.slice %h [0:64, 0:20, 0:20, 0:80] : (!j) -> !i
  %b = stablehlo.slice %h [0:64, 0:20, 0:20, 80:160] : (!j) -> !i
  %t = stablehlo.tanh %a : !i
  %l = stablehlo.logistic %b : !i
  %g = stablehlo.multiply %t, %l : !i
  %y = stablehlo.convolution(%g, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (!i, !w) -> !i
  %z = stablehlo.constant dense<0.0> : tensor<bf16>
  %r = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [0, 1, 2] : (!i, tensor<bf16>) -> tensor<80xbf16>
  %q = stablehlo.convolution(%g, %d) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (!i, !i) -> !w
  return %r, %q : tensor<80xbf16>, !w
}
