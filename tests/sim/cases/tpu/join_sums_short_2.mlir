// A short array that several others are made of is stored if it is made of three of its size, not if rows and
// columns are repeated to that size, and however long the way to its only one is.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: arrays([300,64]) 1
func.func public @main(%x0: tensor<300x64xui32>) -> (tensor<300xui32>, tensor<64xui32>) {
  %z = stablehlo.constant dense<0> : tensor<ui32>
  %k0 = stablehlo.constant dense<3> : tensor<300x64xui32>
  %l0 = stablehlo.shift_left %x0, %k0 : tensor<300x64xui32>
  %r0 = stablehlo.shift_right_logical %x0, %k0 : tensor<300x64xui32>
  %o0 = stablehlo.or %l0, %r0 : tensor<300x64xui32>
  %x1 = stablehlo.xor %x0, %o0 : tensor<300x64xui32>
  %k1 = stablehlo.constant dense<4> : tensor<300x64xui32>
  %l1 = stablehlo.shift_left %x1, %k1 : tensor<300x64xui32>
  %r1 = stablehlo.shift_right_logical %x1, %k1 : tensor<300x64xui32>
  %o1 = stablehlo.or %l1, %r1 : tensor<300x64xui32>
  %x2 = stablehlo.xor %x1, %o1 : tensor<300x64xui32>
  %k2 = stablehlo.constant dense<5> : tensor<300x64xui32>
  %l2 = stablehlo.shift_left %x2, %k2 : tensor<300x64xui32>
  %r2 = stablehlo.shift_right_logical %x2, %k2 : tensor<300x64xui32>
  %o2 = stablehlo.or %l2, %r2 : tensor<300x64xui32>
  %x3 = stablehlo.xor %x2, %o2 : tensor<300x64xui32>
  %k3 = stablehlo.constant dense<6> : tensor<300x64xui32>
  %l3 = stablehlo.shift_left %x3, %k3 : tensor<300x64xui32>
  %r3 = stablehlo.shift_right_logical %x3, %k3 : tensor<300x64xui32>
  %o3 = stablehlo.or %l3, %r3 : tensor<300x64xui32>
  %x4 = stablehlo.xor %x3, %o3 : tensor<300x64xui32>
  %k4 = stablehlo.constant dense<7> : tensor<300x64xui32>
  %l4 = stablehlo.shift_left %x4, %k4 : tensor<300x64xui32>
  %r4 = stablehlo.shift_right_logical %x4, %k4 : tensor<300x64xui32>
  %o4 = stablehlo.or %l4, %r4 : tensor<300x64xui32>
  %x5 = stablehlo.xor %x4, %o4 : tensor<300x64xui32>
  %k5 = stablehlo.constant dense<8> : tensor<300x64xui32>
  %l5 = stablehlo.shift_left %x5, %k5 : tensor<300x64xui32>
  %r5 = stablehlo.shift_right_logical %x5, %k5 : tensor<300x64xui32>
  %o5 = stablehlo.or %l5, %r5 : tensor<300x64xui32>
  %x6 = stablehlo.xor %x5, %o5 : tensor<300x64xui32>
  %k6 = stablehlo.constant dense<9> : tensor<300x64xui32>
  %l6 = stablehlo.shift_left %x6, %k6 : tensor<300x64xui32>
  %r6 = stablehlo.shift_right_logical %x6, %k6 : tensor<300x64xui32>
  %o6 = stablehlo.or %l6, %r6 : tensor<300x64xui32>
  %x7 = stablehlo.xor %x6, %o6 : tensor<300x64xui32>
  %k7 = stablehlo.constant dense<10> : tensor<300x64xui32>
  %l7 = stablehlo.shift_left %x7, %k7 : tensor<300x64xui32>
  %r7 = stablehlo.shift_right_logical %x7, %k7 : tensor<300x64xui32>
  %o7 = stablehlo.or %l7, %r7 : tensor<300x64xui32>
  %x8 = stablehlo.xor %x7, %o7 : tensor<300x64xui32>
  %s = stablehlo.reduce(%x8 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<300x64xui32>, tensor<ui32>) -> tensor<300xui32>
  %t = stablehlo.reduce(%x8 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<300x64xui32>, tensor<ui32>) -> tensor<64xui32>
  return %s, %t : tensor<300xui32>, tensor<64xui32>
}
