// Two slices of an array are read one by one.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 112892 ±7%, peak 32571392 ±1%
// EXPECT tpu-v5e: cycles 113663 ±7%, peak 32571392 ±1%
func.func public @main(%a: tensor<3972x1010xf32>) -> tensor<3971x1010xf32> {
  %0 = stablehlo.slice %a [1:3972, 0:1010] : (tensor<3972x1010xf32>) -> tensor<3971x1010xf32>
  %1 = stablehlo.slice %a [0:3971, 0:1010] : (tensor<3972x1010xf32>) -> tensor<3971x1010xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<3971x1010xf32>
  return %2 : tensor<3971x1010xf32>
}
