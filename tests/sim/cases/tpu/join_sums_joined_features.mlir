// What several products made is put side by side and added up by one kernel.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: kernels 3, cycles 41426 ±5%
!x = tensor<4096x256xbf16>
!v = tensor<256x64xbf16>
!w = tensor<256x96xbf16>
!c = tensor<4096x160xbf16>
func.func public @main(%x: !x, %v: !v, %w: !w) -> (!c, tensor<160xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (!x, !v) -> tensor<4096x64xbf16>
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (!x, !w) -> tensor<4096x96xbf16>
  %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<4096x64xbf16>, tensor<4096x96xbf16>) -> !c
  %3 = stablehlo.convert %2 : (!c) -> tensor<4096x160xf32>
  %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4096x160xf32>, tensor<f32>) -> tensor<160xf32>
  return %2, %4 : !c, tensor<160xf32>
}
