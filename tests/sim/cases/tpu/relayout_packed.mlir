// Narrow elements that are moved on chip are packed anew, whatever moves them.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: cycles 26655 ±7%
func.func public @main(%a: tensor<1500x900xbf16>) -> tensor<1494x890xbf16> {
  %0 = stablehlo.slice %a [3:1497, 5:895] : (tensor<1500x900xbf16>) -> tensor<1494x890xbf16>
  return %0 : tensor<1494x890xbf16>
}
