// The mean of 3x3 pixels: summed up as the image lies, divided in a loop of its own.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 235046 ±7%, peak 154141184 ±7%
func.func public @main(%x: tensor<32x56x56x96xf32>) -> tensor<32x56x56x96xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<32x56x56x96xf32>, tensor<f32>) -> tensor<32x56x56x96xf32>
  %n = stablehlo.constant dense<9.0> : tensor<32x56x56x96xf32>
  %y = stablehlo.divide %s, %n : tensor<32x56x56x96xf32>
  return %y : tensor<32x56x56x96xf32>
}
