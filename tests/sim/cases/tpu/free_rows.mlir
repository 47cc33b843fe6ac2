// Vectors that meet vectors are multiplied and added up on every generation.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu7x: cycles 2427 ±10%, peak 98816 ±3%
// EXPECT tpu-v5e: cycles 2245 ±10%, peak 98816 ±3%
func.func public @main(%x: tensor<120x192xbf16>, %y: tensor<120x192xbf16>) -> tensor<120xbf16> {
  %z = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<120x192xbf16>, tensor<120x192xbf16>) -> tensor<120xbf16>
  return %z : tensor<120xbf16>
}
