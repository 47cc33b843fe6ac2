// A slice that ends in the same tiles is no copy.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: kernels 2, peak 1171456 ±1%
func.func public @main(%a: tensor<170x768xf32>) -> tensor<170x768xf32> {
  %0 = stablehlo.slice %a [0:170, 761:768] : (tensor<170x768xf32>) -> tensor<170x7xf32>
  %1 = stablehlo.slice %a [0:170, 0:761] : (tensor<170x768xf32>) -> tensor<170x761xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<170x7xf32>, tensor<170x761xf32>) -> tensor<170x768xf32>
  return %2 : tensor<170x768xf32>
}
