// A reshape that moves elements writes its result in the natural order, in another one by a copy; an update is
// turned to lie as what it goes into.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: peak 557056 ±1%, cycles 2251 ±7%
func.func public @main(%a: tensor<64x384xf32>) -> tensor<64x6x64xf32> {
  %0 = stablehlo.reshape %a : (tensor<64x384xf32>) -> tensor<64x6x64xf32>
  return %0 : tensor<64x6x64xf32>
}
