// In a ring, in pieces that tiles and directions divide; or all of it, cut.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=4096 M=2048 K=512
// EXPECT tpu-v2: cycles 19784 ±10%, peak 71311360 ±3%
// WITH N=512 M=512 K=64
// EXPECT tpu7x: peak 1180160 ±0.1%
func.func public @main(%x: tensor<$Nx$Mxf32>) -> tensor<$Kx$Mxf32> {
  %0 = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<$Nx$Mxf32>) -> tensor<$Kx$Mxf32>
  return %0 : tensor<$Kx$Mxf32>
}
