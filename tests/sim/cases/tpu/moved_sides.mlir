// Sums over as many elements, of other sides, are two loops.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: cycles 58016 ±10%, peak 4198400 ±3%
func.func public @main(%x0: tensor<32x16x16x96xf32>) -> (tensor<f32>) {
  %0 = stablehlo.slice %x0 [0:32, 1:16, 0:16, 0:96] : (tensor<32x16x16x96xf32>) -> tensor<32x15x16x96xf32>
  %1 = stablehlo.slice %x0 [0:32, 0:15, 0:16, 0:96] : (tensor<32x16x16x96xf32>) -> tensor<32x15x16x96xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<32x15x16x96xf32>
  %3 = stablehlo.abs %2 : tensor<32x15x16x96xf32>
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %4 = stablehlo.reduce(%3 init: %cst) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<32x15x16x96xf32>, tensor<f32>) -> tensor<f32>
  %cst_0 = stablehlo.constant dense<7.372800e+05> : tensor<f32>
  %5 = stablehlo.divide %4, %cst_0 : tensor<f32>
  %6 = stablehlo.slice %x0 [0:32, 0:16, 1:16, 0:96] : (tensor<32x16x16x96xf32>) -> tensor<32x16x15x96xf32>
  %7 = stablehlo.slice %x0 [0:32, 0:16, 0:15, 0:96] : (tensor<32x16x16x96xf32>) -> tensor<32x16x15x96xf32>
  %8 = stablehlo.subtract %6, %7 : tensor<32x16x15x96xf32>
  %9 = stablehlo.abs %8 : tensor<32x16x15x96xf32>
  %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %10 = stablehlo.reduce(%9 init: %cst_1) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<32x16x15x96xf32>, tensor<f32>) -> tensor<f32>
  %cst_2 = stablehlo.constant dense<7.372800e+05> : tensor<f32>
  %11 = stablehlo.divide %10, %cst_2 : tensor<f32>
  %12 = stablehlo.add %5, %11 : tensor<f32>
  return %12 : tensor<f32>
}
