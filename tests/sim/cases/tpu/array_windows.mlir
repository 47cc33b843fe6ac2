// bf16[8,2048,2048] by [8,2048,128], cut into windows of less than one of the eight.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu7x: cycles 69474 ±5%
// EXPECT tpu-v5p: cycles 89264 ±5%
// EXPECT tpu-v4: cycles 46974 ±5%
func.func public @main(%a: tensor<8x2048x2048xbf16>, %b: tensor<8x2048x128xbf16>) -> tensor<8x2048x128xbf16> {
  %y = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x2048x2048xbf16>, tensor<8x2048x128xbf16>) -> tensor<8x2048x128xbf16>
  return %y : tensor<8x2048x128xbf16>
}
