// A product that is turned afterwards is multiplied the other way round.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT T4,library: peak 44040192 ±0.001%
// EXPECT H100-SXM,library: peak 49283072 ±0.001%
func.func @main(%x: tensor<4096x1024xbf16>, %d: tensor<4096x512xbf16>) -> tensor<1024x512xf32> {
  %y = stablehlo.dot_general %d, %x, contracting_dims = [0] x [0] : (tensor<4096x512xbf16>, tensor<4096x1024xbf16>) -> tensor<512x1024xbf16>
  %t = stablehlo.transpose %y, dims = [1, 0] : (tensor<512x1024xbf16>) -> tensor<1024x512xbf16>
  %f = stablehlo.convert %t : (tensor<1024x512xbf16>) -> tensor<1024x512xf32>
  return %f : tensor<1024x512xf32>
}
