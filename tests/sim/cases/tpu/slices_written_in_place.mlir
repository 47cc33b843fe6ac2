// The halves of rows, turned: each is written where it belongs.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v4: cycles 8474 ±7%, peak 12582912 ±1%
// EXPECT tpu-v6e: cycles 6244 ±7%, peak 12582912 ±1%
func.func public @main(%a: tensor<4x320x8x64xf32>) -> tensor<4x320x8x64xf32> {
  %0 = stablehlo.slice %a [0:4, 0:320, 0:8, 32:64] : (tensor<4x320x8x64xf32>) -> tensor<4x320x8x32xf32>
  %1 = stablehlo.negate %0 : tensor<4x320x8x32xf32>
  %2 = stablehlo.slice %a [0:4, 0:320, 0:8, 0:32] : (tensor<4x320x8x64xf32>) -> tensor<4x320x8x32xf32>
  %3 = stablehlo.concatenate %1, %2, dim = 3 : (tensor<4x320x8x32xf32>, tensor<4x320x8x32xf32>) -> tensor<4x320x8x64xf32>
  return %3 : tensor<4x320x8x64xf32>
}
