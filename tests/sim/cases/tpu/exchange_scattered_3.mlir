// In a ring, in pieces that tiles and directions divide; or all of it, cut.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v4: cycles 1066 ±10%, peak 6496256 ±3%
// EXPECT tpu-v6e: cycles 2374 ±10%, peak 6496256 ±3%
func.func public @main(%x: tensor<768x1024xf32>) -> tensor<48x1024xf32> {
  %0 = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : tensor<1x16xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<768x1024xf32>) -> tensor<48x1024xf32>
  return %0 : tensor<48x1024xf32>
}
