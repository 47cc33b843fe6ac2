// Rows of whole lanes that are split into eights move tile by tile, in one copy.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 3208 ±10%, peak 327680 ±3%
func.func public @main(%x: tensor<40x2048xbf16>) -> tensor<40x16x128xbf16> {
  %y = stablehlo.reshape %x : (tensor<40x2048xbf16>) -> tensor<40x16x128xbf16>
  return %y : tensor<40x16x128xbf16>
}
