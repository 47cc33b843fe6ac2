// A kernel writes eight results at most.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: kernels 2
func.func public @main(%a: tensor<256x128xf32>) -> (tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>) {
  %c0 = stablehlo.constant dense<0.5> : tensor<256x128xf32>
  %s0 = stablehlo.sine %a : tensor<256x128xf32>
  %r0 = stablehlo.multiply %s0, %c0 : tensor<256x128xf32>
  %c1 = stablehlo.constant dense<1.5> : tensor<256x128xf32>
  %s1 = stablehlo.sine %a : tensor<256x128xf32>
  %r1 = stablehlo.multiply %s1, %c1 : tensor<256x128xf32>
  %c2 = stablehlo.constant dense<2.5> : tensor<256x128xf32>
  %s2 = stablehlo.sine %a : tensor<256x128xf32>
  %r2 = stablehlo.multiply %s2, %c2 : tensor<256x128xf32>
  %c3 = stablehlo.constant dense<3.5> : tensor<256x128xf32>
  %s3 = stablehlo.sine %a : tensor<256x128xf32>
  %r3 = stablehlo.multiply %s3, %c3 : tensor<256x128xf32>
  %c4 = stablehlo.constant dense<4.5> : tensor<256x128xf32>
  %s4 = stablehlo.sine %a : tensor<256x128xf32>
  %r4 = stablehlo.multiply %s4, %c4 : tensor<256x128xf32>
  %c5 = stablehlo.constant dense<5.5> : tensor<256x128xf32>
  %s5 = stablehlo.sine %a : tensor<256x128xf32>
  %r5 = stablehlo.multiply %s5, %c5 : tensor<256x128xf32>
  %c6 = stablehlo.constant dense<6.5> : tensor<256x128xf32>
  %s6 = stablehlo.sine %a : tensor<256x128xf32>
  %r6 = stablehlo.multiply %s6, %c6 : tensor<256x128xf32>
  %c7 = stablehlo.constant dense<7.5> : tensor<256x128xf32>
  %s7 = stablehlo.sine %a : tensor<256x128xf32>
  %r7 = stablehlo.multiply %s7, %c7 : tensor<256x128xf32>
  %c8 = stablehlo.constant dense<8.5> : tensor<256x128xf32>
  %s8 = stablehlo.sine %a : tensor<256x128xf32>
  %r8 = stablehlo.multiply %s8, %c8 : tensor<256x128xf32>
  %c9 = stablehlo.constant dense<9.5> : tensor<256x128xf32>
  %s9 = stablehlo.sine %a : tensor<256x128xf32>
  %r9 = stablehlo.multiply %s9, %c9 : tensor<256x128xf32>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9 : tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>, tensor<256x128xf32>
}
