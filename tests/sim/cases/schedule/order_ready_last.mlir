// Two arguments are padded and put side by side: of what frees and makes the same, that runs first which became
// ready last.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v4: peak 2260992 ±0.1%
// EXPECT tpu-v5e: peak 2260992 ±0.1%
func.func @main(%x: tensor<1024x100xf32>, %y: tensor<1024x28xf32>) -> tensor<1024x128xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<1024x100xf32>, tensor<1024x28xf32>) -> tensor<1024x128xf32>
  return %0 : tensor<1024x128xf32>
}
