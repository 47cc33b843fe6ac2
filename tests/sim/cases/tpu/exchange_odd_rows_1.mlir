// Rows for others that are no whole tiles lie apart.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: peak 1302528 ±0.1%
func.func public @main(%x: tensor<200x384xf32>) -> tensor<200x384xf32> {
  %0 = "stablehlo.all_to_all"(%x) <{concat_dimension = 0 : i64, split_count = 4 : i64, split_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<200x384xf32>) -> tensor<200x384xf32>
  return %0 : tensor<200x384xf32>
}
