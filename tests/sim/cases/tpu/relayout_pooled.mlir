// Images whose windows lie in lanes are relaid before, unless that pads them much more.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=4 M=28 K=24 A=14 B=1 C=3
// EXPECT tpu-v5e: cycles 12373 ±10%
// WITH N=4 M=28 K=24 A=14 B=0 C=2
// EXPECT tpu-v5e: cycles 12352 ±10%
// WITH N=8 M=28 K=24 A=14 B=1 C=3
// EXPECT tpu-v5e: cycles 15579 ±10%
// WITH N=32 M=56 K=40 A=28 B=1 C=3
// EXPECT tpu-v5e: cycles 181660 ±10%
// WITH N=16 M=56 K=24 A=28 B=1 C=3
// EXPECT tpu-v5e: kernels 1
func.func public @main(%x: tensor<$Nx$Mx$Mx$Kxbf16>) -> tensor<$Nx$Ax$Ax$Kxbf16> {
  %l = stablehlo.constant dense<-1.0e30> : tensor<bf16>
  %0 = "stablehlo.reduce_window"(%x, %l) <{padding = dense<[[0, 0], [0, $B], [0, $B], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, $C, $C, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %m = stablehlo.maximum %a, %b : tensor<bf16>
    stablehlo.return %m : tensor<bf16>
  }) : (tensor<$Nx$Mx$Mx$Kxbf16>, tensor<bf16>) -> tensor<$Nx$Ax$Ax$Kxbf16>
  return %0 : tensor<$Nx$Ax$Ax$Kxbf16>
}
