// A reshape that moves elements writes its result in the natural order, in another one by a copy; an update is
// turned to lie as what it goes into.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: peak 2557440 ±1%, cycles 2399 ±7%
func.func public @main(%a: tensor<256x1500xf32> {tf.aliasing_output = 0 : i32}, %u: tensor<36x1500xf32>, %i: tensor<i32>) -> tensor<256x1500xf32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %a, %u, %i, %z : (tensor<256x1500xf32>, tensor<36x1500xf32>, tensor<i32>, tensor<i32>) -> tensor<256x1500xf32>
  return %0 : tensor<256x1500xf32>
}
