// Wide matrices times a vector each stay a product; narrow ones, vectors times vectors, and matrices in lanes, do
// not; on TPU7x these alone.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu7x: cycles 7091 ±10%
func.func public @main(%a: tensor<256x64x64xbf16>, %v: tensor<256x64xbf16>) -> tensor<256x64xbf16> {
  %t = stablehlo.tanh %a : tensor<256x64x64xbf16>
  %y = stablehlo.dot_general %v, %t, batching_dims = [0] x [0], contracting_dims = [1] x [2] : (tensor<256x64xbf16>, tensor<256x64x64xbf16>) -> tensor<256x64xbf16>
  return %y : tensor<256x64xbf16>
}
