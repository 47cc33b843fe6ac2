// A framework keeps what it is given.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT T4,eager: peak <40000000
func.func @main(%x: tensor<2048x1024xbf16>, %w: tensor<1024x2048xbf16>, %v: tensor<2048x512xbf16>) -> tensor<2048x512xbf16> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2048x1024xbf16>, tensor<1024x2048xbf16>) -> tensor<2048x2048xbf16>
  %e = stablehlo.tanh %y : tensor<2048x2048xbf16>
  %z = stablehlo.dot_general %e, %v, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x512xbf16>) -> tensor<2048x512xbf16>
  return %z : tensor<2048x512xbf16>
}
