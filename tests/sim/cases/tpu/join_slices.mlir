// What is cut into parts is stored first, each part is not made again.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: kernels 2
func.func public @main(%a: tensor<64x384xf32>) -> tensor<64x128xf32> {
  %b = stablehlo.multiply %a, %a : tensor<64x384xf32>
  %c = stablehlo.slice %b [0:64, 0:128] : (tensor<64x384xf32>) -> tensor<64x128xf32>
  %d = stablehlo.slice %b [0:64, 128:256] : (tensor<64x384xf32>) -> tensor<64x128xf32>
  %e = stablehlo.add %c, %d : tensor<64x128xf32>
  return %e : tensor<64x128xf32>
}
