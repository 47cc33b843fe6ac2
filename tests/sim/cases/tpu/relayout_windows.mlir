// What a window takes does not grow with its size where it lies outside of tiles.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 25613 ±7%
// EXPECT tpu-v6e: cycles 15687 ±7%
// EXPECT tpu7x: cycles 10710 ±7%
func.func public @main(%a: tensor<32x14x14x256xbf16>) -> tensor<32x14x14x256xbf16> {
  %z = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %0 = "stablehlo.reduce_window"(%a, %z) ({
  ^bb0(%x: tensor<bf16>, %y: tensor<bf16>):
    %m = stablehlo.maximum %x, %y : tensor<bf16>
    stablehlo.return %m : tensor<bf16>
  }) {padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>} : (tensor<32x14x14x256xbf16>, tensor<bf16>) -> tensor<32x14x14x256xbf16>
  return %0 : tensor<32x14x14x256xbf16>
}
