// A copy from on-chip memory takes as small windows as one from device memory.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 26430 ±7%
func.func public @main(%a: tensor<64x14x14x96xbf16>) -> tensor<64x18816xbf16> {
  %0 = stablehlo.reshape %a : (tensor<64x14x14x96xbf16>) -> tensor<64x18816xbf16>
  return %0 : tensor<64x18816xbf16>
}
