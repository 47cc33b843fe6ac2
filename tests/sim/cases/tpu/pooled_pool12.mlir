// Twelve do not: the result has images in its tiles, the image is relaid on the way in.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 8775 ±10%, peak 2949120 ±3%
// EXPECT tpu-v5e: cycles 13042 ±10%, peak 2949120 ±3%
// EXPECT tpu-v6e: cycles 9069 ±10%, peak 2949120 ±3%
func.func public @main(%x0: tensor<8x24x24x128xf32>) -> (tensor<8x12x12x128xf32>) {
  %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%x0, %cst) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
  ^bb0(%x1: tensor<f32>, %x2: tensor<f32>):
    %2 = stablehlo.maximum %x1, %x2 : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<8x24x24x128xf32>, tensor<f32>) -> tensor<8x12x12x128xf32>
  return %1 : tensor<8x12x12x128xf32>
}
