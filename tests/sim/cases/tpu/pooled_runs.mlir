// A running sum of a matrix takes nothing in, and nothing takes it in.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 1240 ±10%, peak 328704 ±3%
// EXPECT tpu-v5e: cycles 4200 ±10%, peak 393728 ±3%
// EXPECT tpu-v6e: cycles 4424 ±10%, peak 393728 ±3%
func.func public @main(%x0: tensor<256x64xf32>, %x1: tensor<256x64xf32>) -> (tensor<256x64xf32>) {
  %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<256x64xf32>
  %1 = stablehlo.multiply %x0, %0 : tensor<256x64xf32>
  %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<f32>
  %3 = "stablehlo.reduce_window"(%1, %2) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [63, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 1, 64>, window_strides = array<i64: 1, 1>}> ({
  ^bb0(%x2: tensor<f32>, %x3: tensor<f32>):
    %7 = stablehlo.add %x2, %x3 : tensor<f32>
    stablehlo.return %7 : tensor<f32>
  }) : (tensor<256x64xf32>, tensor<f32>) -> tensor<256x64xf32>
  %4 = stablehlo.negate %3 : tensor<256x64xf32>
  %5 = stablehlo.exponential %4 : tensor<256x64xf32>
  %6 = stablehlo.multiply %5, %x1 : tensor<256x64xf32>
  return %6 : tensor<256x64xf32>
}
