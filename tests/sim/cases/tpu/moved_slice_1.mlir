// Of a product's rows only those are computed that a slice keeps, also through the conversion that widens them.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 170541 ±6%, peak 22675456 ±1%, kernels 1
func.func @main(%x: tensor<2048x512xbf16>, %w: tensor<512x2048xbf16>) -> tensor<2000x2048xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2048x512xbf16>, tensor<512x2048xbf16>) -> tensor<2048x2048xbf16>
  %1 = stablehlo.convert %0 : (tensor<2048x2048xbf16>) -> tensor<2048x2048xf32>
  %2 = stablehlo.slice %1 [0:2000, 0:2048] : (tensor<2048x2048xf32>) -> tensor<2000x2048xf32>
  %3 = stablehlo.sine %2 : tensor<2000x2048xf32>
  return %3 : tensor<2000x2048xf32>
}
