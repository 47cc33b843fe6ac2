// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 1309 ±7%, peak 458752 ±7%
func.func public @main(%x: tensor<16x3584xf32>) -> tensor<16x14x256xf32> {
  %y = stablehlo.reshape %x : (tensor<16x3584xf32>) -> tensor<16x14x256xf32>
  return %y : tensor<16x14x256xf32>
}
