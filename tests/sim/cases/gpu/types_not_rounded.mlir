// Nothing is rounded that is widened again: one kernel makes both results out of f32.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT T4,library: peak 48234512 ±0.001%
func.func @main(%x: tensor<2048x1024xbf16>, %w: tensor<1024x2048xbf16>, %v: tensor<2048x512xbf16>) -> (tensor<2048x2048xbf16>, tensor<2048x2048xf32>) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2048x1024xbf16>, tensor<1024x2048xbf16>) -> tensor<2048x2048xbf16>
  %e = stablehlo.tanh %y : tensor<2048x2048xbf16>
  %f = stablehlo.convert %e : (tensor<2048x2048xbf16>) -> tensor<2048x2048xf32>
  return %e, %f : tensor<2048x2048xbf16>, tensor<2048x2048xf32>
}
