// x x^T reads x twice.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: cycles 17436 ±10%
func.func public @main(%x: tensor<640x768xf32>) -> tensor<640x640xf32> {
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<640x768xf32>) -> tensor<768x640xf32>
  %y = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<640x768xf32>, tensor<768x640xf32>) -> tensor<640x640xf32>
  return %y : tensor<640x640xf32>
}
