// One kernel takes an array apart without widening what it moves.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: cycles 9427 ±7%, peak 4227328 ±1%
// EXPECT tpu7x: cycles 6491 ±7%, peak 4227328 ±1%
func.func public @main(%a: tensor<2752x384xbf16>) -> (tensor<2752x128xbf16>, tensor<2752x128xbf16>, tensor<2752x128xbf16>) {
  %0 = stablehlo.slice %a [0:2752, 0:128] : (tensor<2752x384xbf16>) -> tensor<2752x128xbf16>
  %1 = stablehlo.slice %a [0:2752, 128:256] : (tensor<2752x384xbf16>) -> tensor<2752x128xbf16>
  %2 = stablehlo.slice %a [0:2752, 256:384] : (tensor<2752x384xbf16>) -> tensor<2752x128xbf16>
  return %0, %1, %2 : tensor<2752x128xbf16>, tensor<2752x128xbf16>, tensor<2752x128xbf16>
}
