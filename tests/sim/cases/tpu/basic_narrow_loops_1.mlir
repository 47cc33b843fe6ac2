// Loops move tiles slower than products do, narrow ones most of all.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v4: cycles 13341 ±4%
// EXPECT tpu-v5e: cycles 35944 ±4%
// EXPECT tpu-v5p: cycles 10307 ±4%
// EXPECT tpu-v6e: cycles 14086 ±4%
func.func @main(%a: tensor<1024x1024xf32>) -> tensor<1024x1024xbf16> {
  %0 = stablehlo.convert %a : (tensor<1024x1024xf32>) -> tensor<1024x1024xbf16>
  return %0 : tensor<1024x1024xbf16>
}
