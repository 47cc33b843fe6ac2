// Heads that become features: the argument, turned and joined, is copied once.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 20192 ±10%, peak 6291456 ±3%
// EXPECT tpu-v3: cycles 14868 ±10%, peak 6291456 ±3%
func.func public @main(%x: tensor<8x4x256x96xf32>) -> tensor<8x256x384xf32> {
  %t = stablehlo.transpose %x, dims = [0, 2, 1, 3] : (tensor<8x4x256x96xf32>) -> tensor<8x256x4x96xf32>
  %y = stablehlo.reshape %t : (tensor<8x256x4x96xf32>) -> tensor<8x256x384xf32>
  return %y : tensor<8x256x384xf32>
}
