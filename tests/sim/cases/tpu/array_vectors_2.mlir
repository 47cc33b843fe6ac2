// Wide matrices times a vector each stay a product; narrow ones, vectors times vectors, and matrices in lanes, do
// not; on TPU7x these alone.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=16 M=16 K=256 A=1
// EXPECT tpu-v5e: cycles 36304 ±10%
// WITH N=4 M=256 K=4 A=2
// EXPECT tpu7x: cycles 10212 ±10%
func.func public @main(%a: tensor<512x$Nx256xbf16>, %v: tensor<512x$Mxbf16>) -> tensor<512x$Kxbf16> {
  %y = stablehlo.dot_general %v, %a, batching_dims = [0] x [0], contracting_dims = [1] x [$A] : (tensor<512x$Mxbf16>, tensor<512x$Nx256xbf16>) -> tensor<512x$Kxbf16>
  return %y : tensor<512x$Kxbf16>
}
