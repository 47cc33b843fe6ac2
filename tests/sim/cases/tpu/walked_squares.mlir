// Nor where their squares are added up.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 50725 ±10%, peak 16793600 ±3%
// EXPECT tpu-v5e: cycles 45768 ±10%, peak 16793600 ±3%
// EXPECT tpu-v6e: cycles 25423 ±10%, peak 16793600 ±3%
func.func public @main(%x0: tensor<2048x512xf32>, %x1: tensor<2048x512xf32>) -> (tensor<2048x512xf32>) {
  %0 = stablehlo.add %x0, %x1 : tensor<2048x512xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<2048x512xf32>
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<2048x512xf32>, tensor<f32>) -> tensor<2048xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<2048xf32>) -> tensor<2048x1xf32>
  %cst_0 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
  %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2048x1xf32>
  %5 = stablehlo.add %3, %4 : tensor<2048x1xf32>
  %6 = stablehlo.sqrt %5 : tensor<2048x1xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<2048x1xf32>) -> tensor<2048x512xf32>
  %8 = stablehlo.divide %0, %7 : tensor<2048x512xf32>
  return %8 : tensor<2048x512xf32>
}
