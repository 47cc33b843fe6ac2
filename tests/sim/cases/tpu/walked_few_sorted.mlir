// Of shorter ones: the words are sorted in place.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 2012 ±10%, peak 329728 ±3%
// EXPECT tpu-v5e: cycles 3961 ±10%, peak 329728 ±3%
// EXPECT tpu-v6e: cycles 4472 ±10%, peak 329728 ±3%
func.func public @main(%x0: tensor<256x128xbf16>) -> (tensor<256x4xbf16>) {
  %values, %indices = chlo.top_k(%x0, k = 4) : tensor<256x128xbf16> -> (tensor<256x4xbf16>, tensor<256x4xi32>)
  return %values : tensor<256x4xbf16>
}
