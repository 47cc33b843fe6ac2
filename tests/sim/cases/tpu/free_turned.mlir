// A reversal along lanes is an operation between two stored arrays.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 134882 ±10%, peak 55050240 ±3%
// EXPECT tpu-v3: cycles 98395 ±10%, peak 41287680 ±3%
func.func public @main(%x: tensor<48x32x35x24xf32>) -> tensor<48x32x35x24xf32> {
  %r = stablehlo.reverse %x, dims = [0] : tensor<48x32x35x24xf32>
  %y = stablehlo.multiply %r, %x : tensor<48x32x35x24xf32>
  return %y : tensor<48x32x35x24xf32>
}
