// What is made of an argument element by element, and windowed as that lies, is stored so.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 4646 ±10%, peak 1106432 ±3%
func.func public @main(%x0: tensor<16x32x32x3xbf16>) -> (tensor<16x26x26x3xbf16>) {
  %0 = stablehlo.multiply %x0, %x0 : tensor<16x32x32x3xbf16>
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
  %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<bf16>
  %2 = "stablehlo.reduce_window"(%0, %1) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 7, 7, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
  ^bb0(%x1: tensor<bf16>, %x2: tensor<bf16>):
    %3 = stablehlo.add %x1, %x2 : tensor<bf16>
    stablehlo.return %3 : tensor<bf16>
  }) : (tensor<16x32x32x3xbf16>, tensor<bf16>) -> tensor<16x26x26x3xbf16>
  return %2 : tensor<16x26x26x3xbf16>
}
