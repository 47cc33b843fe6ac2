// A product that is said twice is made once.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 12378 ±10%, peak 1572864 ±3%
// EXPECT tpu-v2: cycles 11163 ±10%, peak 1310720 ±3%
func.func public @main(%x: tensor<512x256xbf16>, %w: tensor<256x512xbf16>) -> tensor<512x256xbf16> {
  %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x256xbf16>, tensor<256x512xbf16>) -> tensor<512x512xbf16>
  %b = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x256xbf16>, tensor<256x512xbf16>) -> tensor<512x512xbf16>
  %l = stablehlo.slice %a [0:512, 0:256] : (tensor<512x512xbf16>) -> tensor<512x256xbf16>
  %r = stablehlo.slice %b [0:512, 256:512] : (tensor<512x512xbf16>) -> tensor<512x256xbf16>
  %t = stablehlo.tanh %r : tensor<512x256xbf16>
  %y = stablehlo.multiply %l, %t : tensor<512x256xbf16>
  return %y : tensor<512x256xbf16>
}
