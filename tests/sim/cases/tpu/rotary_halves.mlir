// Halves of heads that fill lanes lie as these do, with lanes that are half empty.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 118606 ±10%, peak 10489856 ±3%
// EXPECT tpu-v5e: cycles 64413 ±10%, peak 10489856 ±3%
!g = tensor<2x512x8x128xf32>
!h = tensor<2x512x8x64xf32>
func.func @main(%x: tensor<2x512x512xbf16>, %w: tensor<512x1024xbf16>) -> tensor<2x8x128xbf16> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<2x512x512xbf16>, tensor<512x1024xbf16>) -> tensor<2x512x1024xbf16>
  %1 = stablehlo.reshape %0 : (tensor<2x512x1024xbf16>) -> tensor<2x512x8x128xbf16>
  %2 = stablehlo.convert %1 : (tensor<2x512x8x128xbf16>) -> !g
  %3 = stablehlo.slice %2 [0:2, 0:512, 0:8, 0:64] : (!g) -> !h
  %4 = stablehlo.slice %2 [0:2, 0:512, 0:8, 64:128] : (!g) -> !h
  %5 = stablehlo.multiply %3, %4 : !h
  %6 = stablehlo.subtract %5, %4 : !h
  %7 = stablehlo.multiply %4, %3 : !h
  %8 = stablehlo.add %3, %7 : !h
  %9 = stablehlo.concatenate %6, %8, dim = 3 : (!h, !h) -> !g
  %10 = stablehlo.convert %9 : (!g) -> tensor<2x512x8x128xbf16>
  %11 = stablehlo.convert %10 : (tensor<2x512x8x128xbf16>) -> !g
  %12 = stablehlo.reduce(%11 init: %z) applies stablehlo.add across dimensions = [1] : (!g, tensor<f32>) -> tensor<2x8x128xf32>
  %13 = stablehlo.convert %12 : (tensor<2x8x128xf32>) -> tensor<2x8x128xbf16>
  return %13 : tensor<2x8x128xbf16>
}
