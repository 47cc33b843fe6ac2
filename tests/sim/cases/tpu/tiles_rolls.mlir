// Pieces of different sizes are cut out first; one that lies where it was is not fetched for a short cut.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=56 M=8
// EXPECT tpu-v5e: cycles 2127 ±7%, peak 196608 ±7%
// WITH N=61 M=3
// EXPECT tpu-v5e: cycles 3984 ±7%, peak 135168 ±7%
func.func public @main(%x: tensor<64x256xf32>) -> tensor<64x256xf32> {
  %a = stablehlo.slice %x [$N:64, 0:256] : (tensor<64x256xf32>) -> tensor<$Mx256xf32>
  %b = stablehlo.slice %x [0:$N, 0:256] : (tensor<64x256xf32>) -> tensor<$Nx256xf32>
  %y = stablehlo.concatenate %a, %b, dim = 0 : (tensor<$Mx256xf32>, tensor<$Nx256xf32>) -> tensor<64x256xf32>
  return %y : tensor<64x256xf32>
}
