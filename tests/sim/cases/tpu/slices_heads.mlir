// Features become heads: one copy puts rows into lanes, where splitting the features moves nothing.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 16992 ±7%, peak 2359296 ±1%
// EXPECT tpu-v6e: cycles 13640 ±7%, peak 2359296 ±1%
func.func public @main(%a: tensor<12x128x384xbf16>) -> tensor<12x6x128x64xbf16> {
  %0 = stablehlo.reshape %a : (tensor<12x128x384xbf16>) -> tensor<12x128x6x64xbf16>
  %1 = stablehlo.transpose %0, dims = [0, 2, 1, 3] : (tensor<12x128x6x64xbf16>) -> tensor<12x6x128x64xbf16>
  return %1 : tensor<12x6x128x64xbf16>
}
