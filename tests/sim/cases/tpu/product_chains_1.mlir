// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles(dot_general) 768 ±2%
func.func public @main(%p0: tensor<512x128xf32>, %p1: tensor<128x512xf32>, %p2: tensor<512x512xf32>, %p3: tensor<512x512xf32>, %p4: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %q0 = stablehlo.add %p0, %p0 : tensor<512x128xf32>
  %q1 = stablehlo.add %p1, %p1 : tensor<128x512xf32>
  %q2 = stablehlo.add %p2, %p2 : tensor<512x512xf32>
  %q3 = stablehlo.add %p3, %p3 : tensor<512x512xf32>
  %q4 = stablehlo.add %p4, %p4 : tensor<512x512xf32>
  %i:5 = stablehlo.optimization_barrier %q0, %q1, %q2, %q3, %q4 : tensor<512x128xf32>, tensor<128x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>
  %y = stablehlo.dot_general %i#0, %i#1, contracting_dims = [1] x [0] : (tensor<512x128xf32>, tensor<128x512xf32>) -> tensor<512x512xf32>
  %k0 = stablehlo.constant dense<1.5> : tensor<512x512xf32>
  %c0 = stablehlo.multiply %y, %k0 : tensor<512x512xf32>
  %k1 = stablehlo.constant dense<2.5> : tensor<512x512xf32>
  %c1 = stablehlo.add %c0, %k1 : tensor<512x512xf32>
  %k2 = stablehlo.constant dense<3.5> : tensor<512x512xf32>
  %c2 = stablehlo.multiply %c1, %k2 : tensor<512x512xf32>
  %k3 = stablehlo.constant dense<4.5> : tensor<512x512xf32>
  %c3 = stablehlo.add %c2, %k3 : tensor<512x512xf32>
  %k4 = stablehlo.constant dense<5.5> : tensor<512x512xf32>
  %c4 = stablehlo.multiply %c3, %k4 : tensor<512x512xf32>
  %k5 = stablehlo.constant dense<6.5> : tensor<512x512xf32>
  %c5 = stablehlo.add %c4, %k5 : tensor<512x512xf32>
  %k6 = stablehlo.constant dense<7.5> : tensor<512x512xf32>
  %c6 = stablehlo.multiply %c5, %k6 : tensor<512x512xf32>
  %k7 = stablehlo.constant dense<8.5> : tensor<512x512xf32>
  %c7 = stablehlo.add %c6, %k7 : tensor<512x512xf32>
  %o = stablehlo.optimization_barrier %c7 : tensor<512x512xf32>
  %z = stablehlo.sine %o : tensor<512x512xf32>
  return %z : tensor<512x512xf32>
}
