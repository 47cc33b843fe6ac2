// Groups of channels, turned: features leave the lanes for it and come back.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: cycles 20230 ±7%, peak 33948160 ±1%
func.func public @main(%a: tensor<16x14x28x128xf32>) -> tensor<16x14x28x128xf32> {
  %0 = stablehlo.reshape %a : (tensor<16x14x28x128xf32>) -> tensor<16x14x28x4x32xf32>
  %1 = stablehlo.transpose %0, dims = [0, 1, 2, 4, 3] : (tensor<16x14x28x4x32xf32>) -> tensor<16x14x28x32x4xf32>
  %2 = stablehlo.reshape %1 : (tensor<16x14x28x32x4xf32>) -> tensor<16x14x28x128xf32>
  return %2 : tensor<16x14x28x128xf32>
}
