// The largest of long rows of 16 bits: with their numbers in one word, in natural order.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 13412 ±10%, peak 1954816 ±3%
// EXPECT tpu-v5e: cycles 15881 ±10%, peak 1952768 ±3%
// EXPECT tpu-v6e: cycles 14836 ±10%, peak 1952288 ±3%
func.func public @main(%x0: tensor<384x616xbf16>) -> (tensor<384x2xbf16>, tensor<384x2xi32>) {
  %values, %indices = chlo.top_k(%x0, k = 2) : tensor<384x616xbf16> -> (tensor<384x2xbf16>, tensor<384x2xi32>)
  return %values, %indices : tensor<384x2xbf16>, tensor<384x2xi32>
}
