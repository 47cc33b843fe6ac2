// Updates of two biases are one kernel on some generations.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: kernels 1
// EXPECT tpu-v5e: kernels 2
func.func public @main(%a: tensor<256xf32>, %b: tensor<256xf32>, %c: tensor<256xf32>, %d: tensor<256xf32>) -> (tensor<256xf32>, tensor<256xf32>) {
  %k = stablehlo.constant dense<0.1> : tensor<256xf32>
  %e = stablehlo.multiply %b, %k : tensor<256xf32>
  %f = stablehlo.subtract %a, %e : tensor<256xf32>
  %g = stablehlo.multiply %d, %k : tensor<256xf32>
  %h = stablehlo.subtract %c, %g : tensor<256xf32>
  return %f, %h : tensor<256xf32>, tensor<256xf32>
}
