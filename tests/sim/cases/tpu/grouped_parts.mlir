// The gradients of the heads that share a key are added up by a kernel of its own.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 43108 ±10%, peak 7734272 ±3%
// EXPECT tpu-v5e: cycles 30116 ±10%, peak 11796992 ±3%
// EXPECT tpu-v6e: cycles 15912 ±10%, peak 11796992 ±3%
!h = tensor<4x256x8x64xbf16>
!s = tensor<4x256x2x4x64xbf16>
!f = tensor<4x256x2x4x64xf32>
!y = tensor<4x256x512xbf16>
func.func @main(%s: tensor<4x8x256x256xbf16>, %q: !h, %w: tensor<128x512xbf16>) -> !y {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %q, %s, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [2] : (!h, tensor<4x8x256x256xbf16>) -> tensor<4x8x64x256xbf16>
  %1 = stablehlo.transpose %0, dims = [0, 3, 1, 2] : (tensor<4x8x64x256xbf16>) -> !h
  %2 = stablehlo.reshape %1 : (!h) -> !s
  %3 = stablehlo.convert %2 : (!s) -> !f
  %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [3] : (!f, tensor<f32>) -> tensor<4x256x2x64xf32>
  %5 = stablehlo.convert %4 : (tensor<4x256x2x64xf32>) -> tensor<4x256x2x64xbf16>
  %6 = stablehlo.reshape %5 : (tensor<4x256x2x64xbf16>) -> tensor<4x256x128xbf16>
  %7 = stablehlo.dot_general %6, %w, contracting_dims = [2] x [0] : (tensor<4x256x128xbf16>, tensor<128x512xbf16>) -> !y
  return %7 : !y
}
