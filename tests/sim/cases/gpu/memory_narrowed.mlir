// cuBLAS writes the type that it reads; its workspace is where the result will be, if there is room.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT T4,library: peak 31457280 ±0.001%
// EXPECT H100-SXM,library: peak 65011712 ±0.001%
func.func @main(%x: tensor<4096x1024xf32>, %w: tensor<1024x512xf32>) -> tensor<4096x512xbf16> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4096x1024xf32>, tensor<1024x512xf32>) -> tensor<4096x512xf32>
  %f = stablehlo.convert %y : (tensor<4096x512xf32>) -> tensor<4096x512xbf16>
  return %f : tensor<4096x512xbf16>
}
