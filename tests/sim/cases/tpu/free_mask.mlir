// A mask made from nothing is bytes, which are written like an array.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 4830 ±10%, peak 532480 ±3%
// EXPECT tpu-v2: cycles 1825 ±10%, peak 532480 ±3%
func.func public @main(%x: tensor<8x64x64xf32>) -> tensor<8x64x64xf32> {
  %i = stablehlo.iota dim = 0 : tensor<64x64xi32>
  %j = stablehlo.iota dim = 1 : tensor<64x64xi32>
  %m = stablehlo.compare GE, %i, %j : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi1>
  %b = stablehlo.broadcast_in_dim %m, dims = [1, 2] : (tensor<64x64xi1>) -> tensor<8x64x64xi1>
  %z = stablehlo.constant dense<0.0> : tensor<8x64x64xf32>
  %y = stablehlo.select %b, %x, %z : tensor<8x64x64xi1>, tensor<8x64x64xf32>
  return %y : tensor<8x64x64xf32>
}
