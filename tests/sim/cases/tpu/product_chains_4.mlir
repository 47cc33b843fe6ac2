// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=512 M=128 K=512
// EXPECT tpu-v6e: cycles(dot_general) 2224 ±2%
// WITH N=2048 M=768 K=1536
// EXPECT tpu-v6e: cycles(dot_general) 31224 ±2%
// EXPECT tpu7x: cycles(dot_general) 26880 ±2%
func.func public @main(%p0: tensor<$Nx$Mxf32>, %p1: tensor<$Mx$Kxf32>, %p2: tensor<$Nx$Kxf32>, %p3: tensor<$Nx$Kxf32>, %p4: tensor<$Nx$Kxf32>) -> tensor<$Nx$Kxf32> {
  %q0 = stablehlo.add %p0, %p0 : tensor<$Nx$Mxf32>
  %q1 = stablehlo.add %p1, %p1 : tensor<$Mx$Kxf32>
  %q2 = stablehlo.add %p2, %p2 : tensor<$Nx$Kxf32>
  %q3 = stablehlo.add %p3, %p3 : tensor<$Nx$Kxf32>
  %q4 = stablehlo.add %p4, %p4 : tensor<$Nx$Kxf32>
  %i:5 = stablehlo.optimization_barrier %q0, %q1, %q2, %q3, %q4 : tensor<$Nx$Mxf32>, tensor<$Mx$Kxf32>, tensor<$Nx$Kxf32>, tensor<$Nx$Kxf32>, tensor<$Nx$Kxf32>
  %y = stablehlo.dot_general %i#0, %i#1, contracting_dims = [1] x [0] : (tensor<$Nx$Mxf32>, tensor<$Mx$Kxf32>) -> tensor<$Nx$Kxf32>
  %k0 = stablehlo.constant dense<1.5> : tensor<$Nx$Kxf32>
  %c0 = stablehlo.multiply %y, %k0 : tensor<$Nx$Kxf32>
  %k1 = stablehlo.constant dense<2.5> : tensor<$Nx$Kxf32>
  %c1 = stablehlo.add %c0, %k1 : tensor<$Nx$Kxf32>
  %k2 = stablehlo.constant dense<3.5> : tensor<$Nx$Kxf32>
  %c2 = stablehlo.multiply %c1, %k2 : tensor<$Nx$Kxf32>
  %k3 = stablehlo.constant dense<4.5> : tensor<$Nx$Kxf32>
  %c3 = stablehlo.add %c2, %k3 : tensor<$Nx$Kxf32>
  %k4 = stablehlo.constant dense<5.5> : tensor<$Nx$Kxf32>
  %c4 = stablehlo.multiply %c3, %k4 : tensor<$Nx$Kxf32>
  %k5 = stablehlo.constant dense<6.5> : tensor<$Nx$Kxf32>
  %c5 = stablehlo.add %c4, %k5 : tensor<$Nx$Kxf32>
  %k6 = stablehlo.constant dense<7.5> : tensor<$Nx$Kxf32>
  %c6 = stablehlo.multiply %c5, %k6 : tensor<$Nx$Kxf32>
  %k7 = stablehlo.constant dense<8.5> : tensor<$Nx$Kxf32>
  %c7 = stablehlo.add %c6, %k7 : tensor<$Nx$Kxf32>
  %k8 = stablehlo.constant dense<9.5> : tensor<$Nx$Kxf32>
  %c8 = stablehlo.multiply %c7, %k8 : tensor<$Nx$Kxf32>
  %k9 = stablehlo.constant dense<10.5> : tensor<$Nx$Kxf32>
  %c9 = stablehlo.add %c8, %k9 : tensor<$Nx$Kxf32>
  %k10 = stablehlo.constant dense<11.5> : tensor<$Nx$Kxf32>
  %c10 = stablehlo.multiply %c9, %k10 : tensor<$Nx$Kxf32>
  %k11 = stablehlo.constant dense<12.5> : tensor<$Nx$Kxf32>
  %c11 = stablehlo.add %c10, %k11 : tensor<$Nx$Kxf32>
  %k12 = stablehlo.constant dense<13.5> : tensor<$Nx$Kxf32>
  %c12 = stablehlo.multiply %c11, %k12 : tensor<$Nx$Kxf32>
  %k13 = stablehlo.constant dense<14.5> : tensor<$Nx$Kxf32>
  %c13 = stablehlo.add %c12, %k13 : tensor<$Nx$Kxf32>
  %k14 = stablehlo.constant dense<15.5> : tensor<$Nx$Kxf32>
  %c14 = stablehlo.multiply %c13, %k14 : tensor<$Nx$Kxf32>
  %k15 = stablehlo.constant dense<16.5> : tensor<$Nx$Kxf32>
  %c15 = stablehlo.add %c14, %k15 : tensor<$Nx$Kxf32>
  %k16 = stablehlo.constant dense<17.5> : tensor<$Nx$Kxf32>
  %c16 = stablehlo.multiply %c15, %k16 : tensor<$Nx$Kxf32>
  %k17 = stablehlo.constant dense<18.5> : tensor<$Nx$Kxf32>
  %c17 = stablehlo.add %c16, %k17 : tensor<$Nx$Kxf32>
  %k18 = stablehlo.constant dense<19.5> : tensor<$Nx$Kxf32>
  %c18 = stablehlo.multiply %c17, %k18 : tensor<$Nx$Kxf32>
  %k19 = stablehlo.constant dense<20.5> : tensor<$Nx$Kxf32>
  %c19 = stablehlo.add %c18, %k19 : tensor<$Nx$Kxf32>
  %k20 = stablehlo.constant dense<21.5> : tensor<$Nx$Kxf32>
  %c20 = stablehlo.multiply %c19, %k20 : tensor<$Nx$Kxf32>
  %k21 = stablehlo.constant dense<22.5> : tensor<$Nx$Kxf32>
  %c21 = stablehlo.add %c20, %k21 : tensor<$Nx$Kxf32>
  %k22 = stablehlo.constant dense<23.5> : tensor<$Nx$Kxf32>
  %c22 = stablehlo.multiply %c21, %k22 : tensor<$Nx$Kxf32>
  %k23 = stablehlo.constant dense<24.5> : tensor<$Nx$Kxf32>
  %c23 = stablehlo.add %c22, %k23 : tensor<$Nx$Kxf32>
  %k24 = stablehlo.constant dense<25.5> : tensor<$Nx$Kxf32>
  %c24 = stablehlo.multiply %c23, %k24 : tensor<$Nx$Kxf32>
  %k25 = stablehlo.constant dense<26.5> : tensor<$Nx$Kxf32>
  %c25 = stablehlo.add %c24, %k25 : tensor<$Nx$Kxf32>
  %k26 = stablehlo.constant dense<27.5> : tensor<$Nx$Kxf32>
  %c26 = stablehlo.multiply %c25, %k26 : tensor<$Nx$Kxf32>
  %k27 = stablehlo.constant dense<28.5> : tensor<$Nx$Kxf32>
  %c27 = stablehlo.add %c26, %k27 : tensor<$Nx$Kxf32>
  %k28 = stablehlo.constant dense<29.5> : tensor<$Nx$Kxf32>
  %c28 = stablehlo.multiply %c27, %k28 : tensor<$Nx$Kxf32>
  %k29 = stablehlo.constant dense<30.5> : tensor<$Nx$Kxf32>
  %c29 = stablehlo.add %c28, %k29 : tensor<$Nx$Kxf32>
  %k30 = stablehlo.constant dense<31.5> : tensor<$Nx$Kxf32>
  %c30 = stablehlo.multiply %c29, %k30 : tensor<$Nx$Kxf32>
  %k31 = stablehlo.constant dense<32.5> : tensor<$Nx$Kxf32>
  %c31 = stablehlo.add %c30, %k31 : tensor<$Nx$Kxf32>
  %o = stablehlo.optimization_barrier %c31 : tensor<$Nx$Kxf32>
  %z = stablehlo.sine %o : tensor<$Nx$Kxf32>
  return %z : tensor<$Nx$Kxf32>
}
