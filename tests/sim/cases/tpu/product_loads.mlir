// Arrays are loaded from memory each time that they are used, results in registers are not.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles(dot_general) 949 ±2%
func.func public @main(%p0: tensor<512x128xf32>, %p1: tensor<128x512xf32>, %p2: tensor<512x512xf32>, %p3: tensor<512x512xf32>, %p4: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %q0 = stablehlo.add %p0, %p0 : tensor<512x128xf32>
  %q1 = stablehlo.add %p1, %p1 : tensor<128x512xf32>
  %q2 = stablehlo.add %p2, %p2 : tensor<512x512xf32>
  %q3 = stablehlo.add %p3, %p3 : tensor<512x512xf32>
  %q4 = stablehlo.add %p4, %p4 : tensor<512x512xf32>
  %i:5 = stablehlo.optimization_barrier %q0, %q1, %q2, %q3, %q4 : tensor<512x128xf32>, tensor<128x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>
  %y = stablehlo.dot_general %i#0, %i#1, contracting_dims = [1] x [0] : (tensor<512x128xf32>, tensor<128x512xf32>) -> tensor<512x512xf32>
  %1 = stablehlo.multiply %y, %i#2 : tensor<512x512xf32>
  %2 = stablehlo.multiply %1, %i#3 : tensor<512x512xf32>
  %3 = stablehlo.multiply %2, %i#4 : tensor<512x512xf32>
  %4 = stablehlo.multiply %3, %y : tensor<512x512xf32>
  %5 = stablehlo.multiply %4, %i#2 : tensor<512x512xf32>
  %6 = stablehlo.multiply %5, %i#3 : tensor<512x512xf32>
  %7 = stablehlo.multiply %6, %i#4 : tensor<512x512xf32>
  %o = stablehlo.optimization_barrier %7 : tensor<512x512xf32>
  %z = stablehlo.sine %o : tensor<512x512xf32>
  return %z : tensor<512x512xf32>
}
