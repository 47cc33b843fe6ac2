// Along rows of any length: blocks of 128 lie apart twice; in device memory the first time without what their
// number is padded by. Where they do not fill tiles everything is turned, there and back.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=784 M=1312 T=f32 K=1311
// EXPECT tpu-v5e: peak 23568896 ±1%, cycles 125720 ±15%
// EXPECT tpu-v5p: peak 21217792 ±1%
// WITH N=800 M=1400 T=bf16 K=1399
// EXPECT tpu7x: peak 11874816 ±1%, cycles 64353 ±15%
// EXPECT tpu-v2: peak 10699776 ±1%
// EXPECT tpu-v6e: peak 11874816 ±1%, cycles 73791 ±15%
// WITH N=600 M=2000 T=f32 K=1999
// EXPECT tpu-v4: peak 20357632 ±1%
// EXPECT tpu-v2: peak 20317184 ±1%
// WITH N=1024 M=1024 T=f32 K=1023
// EXPECT tpu-v6e: peak 16810496 ±1%
// EXPECT tpu-v3: peak 16778240 ±1%
!t = tensor<$Nx$Mx$T>
!e = tensor<$T>
func.func public @main(%x: !t) -> !t {
  %z = stablehlo.constant dense<0.0> : !e
  %s = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[0, 0], [$K, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, $M>}> ({
  ^bb0(%a: !e, %b: !e):
    %c = stablehlo.add %a, %b : !e
    stablehlo.return %c : !e
  }) : (!t, !e) -> !t
  return %s : !t
}
