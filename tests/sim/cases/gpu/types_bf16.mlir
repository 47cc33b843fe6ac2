// What XLA plans for a T4: operands and what is between the products are f32.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT T4,library: peak 50331648 ±0.001%
// EXPECT A100-80GB,library: peak 29360128 ±0.001%
// EXPECT V100,library: peak 50331648 ±0.001%
// EXPECT P100,library: peak 50331648 ±0.001%
func.func @main(%x: tensor<2048x1024xbf16>, %w: tensor<1024x2048xbf16>, %v: tensor<2048x512xbf16>) -> tensor<2048x512xbf16> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2048x1024xbf16>, tensor<1024x2048xbf16>) -> tensor<2048x2048xbf16>
  %e = stablehlo.tanh %y : tensor<2048x2048xbf16>
  %z = stablehlo.dot_general %e, %v, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x512xbf16>) -> tensor<2048x512xbf16>
  return %z : tensor<2048x512xbf16>
}
