// A clipped convolution whose averages are taken: its kernel finds the bits, the pool clips for itself, and the
// pool's gradient is a kernel of its own, bits unpacked before it.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: peak 15675904 ±0.1%, cycles 188958 ±10%
module {
  func.func public @main(%arg0: tensor<3x3x8x24xf32>, %arg1: tensor<128x28x28x8xf32>, %arg2: tensor<128x14x14x24xf32>) -> (tensor<f32>, tensor<3x3x8x24xf32>) {
    %0 = stablehlo.convolution(%arg1, %arg0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<128x28x28x8xf32>, tensor<3x3x8x24xf32>) -> tensor<128x28x28x24xf32>
    %1 = call @relu(%0) : (tensor<128x28x28x24xf32>) -> tensor<128x28x28x24xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<128x28x28x24xf32>
    %3 = stablehlo.compare GT, %0, %2, FLOAT : (tensor<128x28x28x24xf32>, tensor<128x28x28x24xf32>) -> tensor<128x28x28x24xi1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<f32>
    %5 = "stablehlo.reduce_window"(%1, %4) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %16 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %16 : tensor<f32>
    }) : (tensor<128x28x28x24xf32>, tensor<f32>) -> tensor<128x14x14x24xf32>
    %6 = stablehlo.multiply %5, %arg2 : tensor<128x14x14x24xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<128x14x14x24xf32>, tensor<f32>) -> tensor<f32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<128x14x14x24xf32>
    %9 = stablehlo.multiply %8, %arg2 : tensor<128x14x14x24xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.pad %9, %cst_3, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 1, 1, 0] : (tensor<128x14x14x24xf32>, tensor<f32>) -> tensor<128x29x29x24xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<f32>
    %12 = "stablehlo.reduce_window"(%10, %11) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %16 = stablehlo.add %arg3, %arg4 : tensor<f32>
      stablehlo.return %16 : tensor<f32>
    }) : (tensor<128x29x29x24xf32>, tensor<f32>) -> tensor<128x28x28x24xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<128x28x28x24xf32>
    %14 = stablehlo.select %3, %12, %13 : tensor<128x28x28x24xi1>, tensor<128x28x28x24xf32>
    %15 = stablehlo.convolution(%arg1, %14) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<128x28x28x8xf32>, tensor<128x28x28x24xf32>) -> tensor<3x3x8x24xf32>
    return %7, %15 : tensor<f32>, tensor<3x3x8x24xf32>
  }
  func.func private @relu(%arg0: tensor<128x28x28x24xf32>) -> tensor<128x28x28x24xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<128x28x28x24xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<128x28x28x24xf32>
    return %1 : tensor<128x28x28x24xf32>
  }
}
