// A product takes an operand with the batch in sublanes as it lies, and has the other one fetched.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: peak 2678784 ±1%, cycles 11907 ±7%
// EXPECT tpu-v5e: peak 3661824 ±1%, cycles 10262 ±7%
func.func public @main(%a: tensor<24x128x196xbf16>, %b: tensor<24x196x80xbf16>) -> tensor<24x128x80xbf16> {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<24x128x196xbf16>, tensor<24x196x80xbf16>) -> tensor<24x128x80xbf16>
  return %0 : tensor<24x128x80xbf16>
}
