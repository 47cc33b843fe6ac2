// What the compiler writes as other operations has libtpu's cycles: a stable sort that is turned both ways, a small
// top-k that is a sort.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 12897 ±10%, peak 4198400 ±5%
// EXPECT tpu-v5e: cycles 8144 ±10%, peak 5244928 ±5%
// EXPECT tpu-v6e: cycles 6720 ±10%, peak 5244928 ±5%
func.func @main(%x: tensor<256x1024xf32>) -> tensor<256x1024xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<256x1024xf32>) -> tensor<256x1024xf32>
  return %0 : tensor<256x1024xf32>
}
