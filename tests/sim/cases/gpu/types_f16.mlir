// It computes in f16 itself, which one of Kepler does not.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT T4,library: peak 29360128 ±0.001%
// EXPECT P100,library: peak 29360128 ±0.001%
// EXPECT K80,library: peak 50331648 ±0.001%
func.func @main(%x: tensor<2048x1024xf16>, %w: tensor<1024x2048xf16>, %v: tensor<2048x512xf16>) -> tensor<2048x512xf16> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2048x1024xf16>, tensor<1024x2048xf16>) -> tensor<2048x2048xf16>
  %e = stablehlo.tanh %y : tensor<2048x2048xf16>
  %z = stablehlo.dot_general %e, %v, contracting_dims = [1] x [0] : (tensor<2048x2048xf16>, tensor<2048x512xf16>) -> tensor<2048x512xf16>
  return %z : tensor<2048x512xf16>
}
