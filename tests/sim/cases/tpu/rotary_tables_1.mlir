// Two loops that do the same with arrays of one shape are one if they repeat a table or a vector that both read.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 40208 ±10%, peak 17040384 ±3%
// EXPECT tpu-v5e: cycles 41376 ±10%, peak 17039872 ±3%
// EXPECT tpu-v6e: cycles 24460 ±10%, peak 17039392 ±3%
!t = tensor<4x256x8x128xf32>
func.func @main(%a: !t, %b: !t, %cos: tensor<256x128xf32>, %sin: tensor<256x128xf32>) -> (!t, !t) {
  %c = stablehlo.broadcast_in_dim %cos, dims = [1, 3] : (tensor<256x128xf32>) -> !t
  %s = stablehlo.broadcast_in_dim %sin, dims = [1, 3] : (tensor<256x128xf32>) -> !t
  %0 = stablehlo.multiply %a, %c : !t
  %1 = stablehlo.tanh %a : !t
  %2 = stablehlo.multiply %1, %s : !t
  %3 = stablehlo.add %0, %2 : !t
  %4 = stablehlo.multiply %b, %c : !t
  %5 = stablehlo.tanh %b : !t
  %6 = stablehlo.multiply %5, %s : !t
  %7 = stablehlo.add %4, %6 : !t
  return %3, %7 : !t, !t
}
