// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=100 M=49 K=6272
// EXPECT tpu-v5e: cycles 23247 ±7%, peak 11067904 ±7%
// WITH N=20 M=7 K=896
// EXPECT tpu-v2: cycles 1299 ±7%, peak 267264 ±7%
func.func public @main(%x: tensor<$Nx$Mx128xf32>) -> tensor<$Nx$Kxf32> {
  %y = stablehlo.reshape %x : (tensor<$Nx$Mx128xf32>) -> tensor<$Nx$Kxf32>
  return %y : tensor<$Nx$Kxf32>
}
