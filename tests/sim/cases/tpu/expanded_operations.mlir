// Functions that XLA has no operation for are written out in others: alone they are a fused loop, not an operation whose arithmetic nobody sees.
// TRUTH libtpu 0.0.52, compiled ahead of time, each alone
// WITH OP=acos
// EXPECT tpu-v5e: cycles 63232 ±1%
// WITH OP=acosh
// EXPECT tpu-v5e: cycles 42408 ±1%
// WITH OP=atan
// EXPECT tpu-v5e: cycles 40344 ±1%
// WITH OP=bessel_i1e
// EXPECT tpu-v5e: cycles 53034 ±2%
// WITH OP=erfc
// EXPECT tpu-v5e: cycles 50208 ±1%
// WITH OP=lgamma
// EXPECT tpu-v5e: cycles 122674 ±3%
// WITH OP=digamma
// EXPECT tpu-v5e: cycles 223517 ±3%
func.func public @main(%x: tensor<1024x2048xf32>) -> tensor<1024x2048xf32> {
  %0 = chlo.$OP %x : tensor<1024x2048xf32> -> tensor<1024x2048xf32>
  return %0 : tensor<1024x2048xf32>
}
