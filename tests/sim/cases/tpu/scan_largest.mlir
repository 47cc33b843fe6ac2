// The largest five of rows of 448 come from a kernel of their own, beside an operand that is turned.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: peak 288256 ±1%
// EXPECT tpu-v2: peak 289792 ±1%
// EXPECT tpu7x: peak 287776 ±1%
func.func public @main(%x: tensor<20x448xf32>) -> (tensor<20x5xf32>, tensor<20x5xi32>) {
  %v, %i = chlo.top_k(%x, k = 5) : tensor<20x448xf32> -> (tensor<20x5xf32>, tensor<20x5xi32>)
  return %v, %i : tensor<20x5xf32>, tensor<20x5xi32>
}
