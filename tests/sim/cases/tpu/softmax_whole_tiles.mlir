// A softmax of f32 over a side of whole tiles is one kernel as well.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: kernels 1
func.func public @main(%x: tensor<4x12x88x128xf32>) -> tensor<4x12x88x128xf32> {
  %l = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %l) applies stablehlo.maximum across dimensions = [3] : (tensor<4x12x88x128xf32>, tensor<f32>) -> tensor<4x12x88xf32>
  %b = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (tensor<4x12x88xf32>) -> tensor<4x12x88x128xf32>
  %d = stablehlo.subtract %x, %b : tensor<4x12x88x128xf32>
  %e = stablehlo.exponential %d : tensor<4x12x88x128xf32>
  %s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [3] : (tensor<4x12x88x128xf32>, tensor<f32>) -> tensor<4x12x88xf32>
  %c = stablehlo.broadcast_in_dim %s, dims = [0, 1, 2] : (tensor<4x12x88xf32>) -> tensor<4x12x88x128xf32>
  %r = stablehlo.divide %e, %c : tensor<4x12x88x128xf32>
  return %r : tensor<4x12x88x128xf32>
}
