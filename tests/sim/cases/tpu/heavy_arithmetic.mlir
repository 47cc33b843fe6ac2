// Much arithmetic on an array is cut into more windows than the array needs: transfers hide under it, where a window alone would wait for both.
// TRUTH libtpu 0.0.52, compiled ahead of time, each alone
// WITH OP=sine
// EXPECT tpu-v5e: cycles 25286 ±2%
// WITH OP=tan
// EXPECT tpu-v5e: cycles 27098 ±4%
// WITH OP=tanh
// EXPECT tpu-v5e: cycles 15377 ±1%
func.func public @main(%x: tensor<1024x512xf32>, %y: tensor<1024x512xf32>) -> tensor<1024x512xf32> {
  %0 = stablehlo.$OP %x : tensor<1024x512xf32>
  %1 = stablehlo.add %0, %y : tensor<1024x512xf32>
  return %1 : tensor<1024x512xf32>
}
