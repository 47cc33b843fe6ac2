// Channels lie in lanes while a depthwise convolution works, also where images lie there outside of it.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=32 M=128 K=3 A=1
// EXPECT tpu-v6e: cycles 62701 ±5%
// WITH N=64 M=32 K=3 A=1
// EXPECT tpu-v6e: cycles 118670 ±5%
// EXPECT tpu-v5e: cycles 119637 ±5%
// WITH N=32 M=128 K=7 A=3
// EXPECT tpu7x: cycles 314659 ±5%
// WITH N=32 M=128 K=5 A=2
// EXPECT tpu-v2: cycles 175224 ±5%
// WITH N=64 M=64 K=5 A=2
// EXPECT tpu-v4: cycles 172816 ±5%
func.func public @main(%x: tensor<$Nx28x28x$Mxbf16>, %w: tensor<$Kx$Kx1x$Mxbf16>) -> tensor<$Nx28x28x$Mxbf16> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[$A, $A], [$A, $A]]} {batch_group_count = 1 : i64, feature_group_count = $M : i64} : (tensor<$Nx28x28x$Mxbf16>, tensor<$Kx$Kx1x$Mxbf16>) -> tensor<$Nx28x28x$Mxbf16>
  return %y : tensor<$Nx28x28x$Mxbf16>
}
