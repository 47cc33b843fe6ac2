// A logarithm of a softmax is two kernels, with the exponents stored between them.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: kernels 2
// EXPECT tpu-v2: kernels 4
func.func public @main(%x: tensor<64x50x200xf32>) -> tensor<64x50x200xf32> {
  %l = stablehlo.constant dense<-1.0e30> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %l) applies stablehlo.maximum across dimensions = [2] : (tensor<64x50x200xf32>, tensor<f32>) -> tensor<64x50xf32>
  %b = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<64x50xf32>) -> tensor<64x50x200xf32>
  %d = stablehlo.subtract %x, %b : tensor<64x50x200xf32>
  %e = stablehlo.exponential %d : tensor<64x50x200xf32>
  %s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [2] : (tensor<64x50x200xf32>, tensor<f32>) -> tensor<64x50xf32>
  %g = stablehlo.log %s : tensor<64x50xf32>
  %c = stablehlo.broadcast_in_dim %g, dims = [0, 1] : (tensor<64x50xf32>) -> tensor<64x50x200xf32>
  %r = stablehlo.subtract %d, %c : tensor<64x50x200xf32>
  return %r : tensor<64x50x200xf32>
}
