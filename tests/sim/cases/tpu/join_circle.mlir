// What adds 1 to x joins what multiplies that by x's sums, reversed: the sums may not join them as well, for the
// reversal waits for these and they for it. (estimate() asks whether any kernels wait for each other.)
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: circular 0
!x = tensor<64x64xf32>
!s = tensor<64xf32>
func.func public @main(%x: !x) -> (!x, !x) {
  %o = stablehlo.constant dense<1.0> : !x
  %n = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.add %x, %o : !x
  %s = stablehlo.reduce(%x init: %n) applies stablehlo.add across dimensions = [1] : (!x, tensor<f32>) -> !s
  %r = stablehlo.reverse %s, dims = [0] : !s
  %t = stablehlo.broadcast_in_dim %r, dims = [0] : (!s) -> !x
  %z = stablehlo.multiply %y, %t : !x
  return %y, %z : !x, !x
}
