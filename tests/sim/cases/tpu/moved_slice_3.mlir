// What is padded and then rounded is rounded first: the narrow array is stored, once for two products.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: peak 17154560 ±1%, temp <4200000, kernels 3
func.func @main(%x: tensor<2000x512xf32>, %w: tensor<512x1024xbf16>, %v: tensor<512x2048xbf16>) -> (tensor<2048x1024xbf16>, tensor<512x512xbf16>) {
  %0 = stablehlo.sine %x : tensor<2000x512xf32>
  %1 = stablehlo.cosine %x : tensor<2000x512xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<2000x512xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.pad %2, %z, low = [0, 0], high = [48, 0], interior = [0, 0] : (tensor<2000x512xf32>, tensor<f32>) -> tensor<2048x512xf32>
  %4 = stablehlo.convert %3 : (tensor<2048x512xf32>) -> tensor<2048x512xbf16>
  %5 = stablehlo.dot_general %4, %w, contracting_dims = [1] x [0] : (tensor<2048x512xbf16>, tensor<512x1024xbf16>) -> tensor<2048x1024xbf16>
  %6 = stablehlo.dot_general %v, %4, contracting_dims = [1] x [0] : (tensor<512x2048xbf16>, tensor<2048x512xbf16>) -> tensor<512x512xbf16>
  return %5, %6 : tensor<2048x1024xbf16>, tensor<512x512xbf16>
}
