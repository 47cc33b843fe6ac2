// An optimizer's four results, one made of the other, come from one loop.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: cycles 2244 ±10%, peak 110624 ±3%
// EXPECT tpu7x: cycles 2363 ±10%, peak 110624 ±3%
func.func public @main(%x0: tensor<56x24xf32>, %x1: tensor<56x24xf32>, %x2: tensor<56x24xf32>, %x3: tensor<56x24xf32>, %x4: tensor<56x24xf32>) -> (tensor<56x24xf32>, tensor<56x24xf32>, tensor<56x24xf32>, tensor<56x24xf32>) {
  %cst = stablehlo.constant dense<0.899999976> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<56x24xf32>
  %1 = stablehlo.multiply %0, %x2 : tensor<56x24xf32>
  %cst_0 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
  %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<56x24xf32>
  %3 = stablehlo.multiply %2, %x1 : tensor<56x24xf32>
  %4 = stablehlo.add %1, %3 : tensor<56x24xf32>
  %cst_1 = stablehlo.constant dense<9.990000e-01> : tensor<f32>
  %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<56x24xf32>
  %6 = stablehlo.multiply %5, %x3 : tensor<56x24xf32>
  %cst_2 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
  %7 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<56x24xf32>
  %8 = stablehlo.multiply %7, %x1 : tensor<56x24xf32>
  %9 = stablehlo.multiply %8, %x1 : tensor<56x24xf32>
  %10 = stablehlo.add %6, %9 : tensor<56x24xf32>
  %11 = stablehlo.maximum %x4, %10 : tensor<56x24xf32>
  %cst_3 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
  %12 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<56x24xf32>
  %13 = stablehlo.multiply %12, %4 : tensor<56x24xf32>
  %14 = stablehlo.sqrt %11 : tensor<56x24xf32>
  %cst_4 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
  %15 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<56x24xf32>
  %16 = stablehlo.add %14, %15 : tensor<56x24xf32>
  %17 = stablehlo.divide %13, %16 : tensor<56x24xf32>
  %18 = stablehlo.subtract %x0, %17 : tensor<56x24xf32>
  return %18, %4, %10, %11 : tensor<56x24xf32>, tensor<56x24xf32>, tensor<56x24xf32>, tensor<56x24xf32>
}
