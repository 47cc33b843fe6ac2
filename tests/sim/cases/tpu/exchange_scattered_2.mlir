// In a ring, in pieces that tiles and directions divide; or all of it, cut.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=512 M=512 K=128
// EXPECT tpu-v4: cycles 0, peak 1310720 ±0.1%
// EXPECT tpu-v5e: cycles 0, peak 1310720 ±0.1%
// WITH N=4096 M=2048 K=1024
// EXPECT tpu-v4: cycles 21685 ±10%, peak 59777024 ±3%
// EXPECT tpu-v5e: cycles 42835 ±10%, peak 59777024 ±3%
// EXPECT tpu-v6e: cycles 16894 ±10%, peak 59252736 ±3%
// WITH N=160 M=1024 K=40
// EXPECT tpu-v5e: cycles 0, peak 819200 ±0.1%
// WITH N=8192 M=1024 K=2048
// EXPECT tpu-v5p: cycles 19703 ±10%, peak 59777024 ±3%
func.func public @main(%x: tensor<$Nx$Mxf32>) -> tensor<$Kx$Mxf32> {
  %0 = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<$Nx$Mxf32>) -> tensor<$Kx$Mxf32>
  return %0 : tensor<$Kx$Mxf32>
}
