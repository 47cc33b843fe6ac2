// Results that are only added up are packed all the same; to a single number they leave the chip.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles(dot_general) 4700 ±2%
// EXPECT tpu-v6e: cycles(dot_general) 1280 ±2%
func.func public @main(%p0: tensor<512x128xf32>, %p1: tensor<128x512xf32>, %p2: tensor<512x512xf32>, %p3: tensor<512x512xf32>, %p4: tensor<512x512xf32>) -> tensor<512xf32> {
  %q0 = stablehlo.add %p0, %p0 : tensor<512x128xf32>
  %q1 = stablehlo.add %p1, %p1 : tensor<128x512xf32>
  %q2 = stablehlo.add %p2, %p2 : tensor<512x512xf32>
  %q3 = stablehlo.add %p3, %p3 : tensor<512x512xf32>
  %q4 = stablehlo.add %p4, %p4 : tensor<512x512xf32>
  %i:5 = stablehlo.optimization_barrier %q0, %q1, %q2, %q3, %q4 : tensor<512x128xf32>, tensor<128x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>
  %y = stablehlo.dot_general %i#0, %i#1, contracting_dims = [1] x [0] : (tensor<512x128xf32>, tensor<128x512xf32>) -> tensor<512x512xf32>
  %1 = stablehlo.multiply %y, %i#2 : tensor<512x512xf32>
  %2 = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [0] : (tensor<512x512xf32>, tensor<f32>) -> tensor<512xf32>
  %o = stablehlo.optimization_barrier %3 : tensor<512xf32>
  %z = stablehlo.sine %o : tensor<512xf32>
  return %z : tensor<512xf32>
}
