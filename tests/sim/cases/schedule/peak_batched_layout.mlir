// Rows and columns of a batched product share the tiles: operands that come with the batch in lanes are turned, and
// so is the result.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: peak 7864320 ±0.1%
// EXPECT tpu-v4: peak 7864320 ±0.1%
// EXPECT tpu-v5e: peak 7864320 ±0.1%
// EXPECT tpu-v6e: peak 7864320 ±0.1%
// EXPECT tpu7x: peak 7864320 ±0.1%
func.func @main(%a: tensor<256x32x32xbf16>, %b: tensor<256x32x32xbf16>) -> tensor<256x32x32xbf16> {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<256x32x32xbf16>, tensor<256x32x32xbf16>) -> tensor<256x32x32xbf16>
  return %0 : tensor<256x32x32xbf16>
}
