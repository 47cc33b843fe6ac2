// What the compiler writes as other operations has libtpu's cycles: a stable sort that is turned both ways, a small
// top-k that is a sort.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 4014 ±10%, peak 2164224 ±5%
func.func @main(%x: tensor<1000x100xf32>) -> (tensor<1000x3xf32>, tensor<1000x3xi32>) {
  %v, %i = chlo.top_k(%x, k = 3) : tensor<1000x100xf32> -> (tensor<1000x3xf32>, tensor<1000x3xi32>)
  return %v, %i : tensor<1000x3xf32>, tensor<1000x3xi32>
}
