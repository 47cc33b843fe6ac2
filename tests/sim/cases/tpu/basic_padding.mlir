// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: arguments 1048576
func.func @main(%a: tensor<65536x3xf32>) -> tensor<65536x3xf32> {
  %0 = stablehlo.negate %a : tensor<65536x3xf32>
  return %0 : tensor<65536x3xf32>
}
