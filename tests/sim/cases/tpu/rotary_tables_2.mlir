// Two loops that do the same with arrays of one shape are one if they repeat a table or a vector that both read.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 76908 ±10%, peak 33557504 ±3%
// EXPECT tpu-v5e: cycles 78332 ±10%, peak 33556992 ±3%
// EXPECT tpu-v6e: cycles 43294 ±10%, peak 33556512 ±3%
!t = tensor<4096x512xf32>
func.func @main(%a: !t, %b: !t, %v: tensor<512xf32>) -> (!t, !t) {
  %c = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<512xf32>) -> !t
  %0 = stablehlo.multiply %a, %c : !t
  %1 = stablehlo.multiply %b, %c : !t
  return %0, %1 : !t, !t
}
