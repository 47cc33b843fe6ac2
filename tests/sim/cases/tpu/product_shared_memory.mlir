// In v4's shared memory: products start sooner than from device memory, and are written no faster. What is
// contracted lies in lanes of a transposed operand: its tiles are turned as they are loaded.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=24 M=128 K=128 A=512 B=512 C=0
// EXPECT tpu-v4: cycles(dot_general) 1052 ±2%
// WITH N=64 M=128 K=128 A=128 B=128 C=0
// EXPECT tpu-v4: cycles(dot_general) 1019 ±2%
// WITH N=1024 M=128 K=128 A=1024 B=1024 C=0
// EXPECT tpu-v4: cycles(dot_general) 6505 ±2%
// WITH N=8 M=1024 K=128 A=1024 B=128 C=1
// EXPECT tpu-v4: cycles(dot_general) 1287 ±2%
// WITH N=24 M=128 K=512 A=128 B=512 C=1
// EXPECT tpu-v4: cycles(dot_general) 1212 ±2%
func.func public @main(%p0: tensor<$Nx$Mxf32>, %p1: tensor<$Kx$Axf32>, %p2: tensor<$Nx$Bxf32>, %p3: tensor<$Nx$Bxf32>, %p4: tensor<$Nx$Bxf32>) -> tensor<$Nx$Bxf32> {
  %q0 = stablehlo.add %p0, %p0 : tensor<$Nx$Mxf32>
  %q1 = stablehlo.add %p1, %p1 : tensor<$Kx$Axf32>
  %q2 = stablehlo.add %p2, %p2 : tensor<$Nx$Bxf32>
  %q3 = stablehlo.add %p3, %p3 : tensor<$Nx$Bxf32>
  %q4 = stablehlo.add %p4, %p4 : tensor<$Nx$Bxf32>
  %i:5 = stablehlo.optimization_barrier %q0, %q1, %q2, %q3, %q4 : tensor<$Nx$Mxf32>, tensor<$Kx$Axf32>, tensor<$Nx$Bxf32>, tensor<$Nx$Bxf32>, tensor<$Nx$Bxf32>
  %y = stablehlo.dot_general %i#0, %i#1, contracting_dims = [1] x [$C] : (tensor<$Nx$Mxf32>, tensor<$Kx$Axf32>) -> tensor<$Nx$Bxf32>
  %o = stablehlo.optimization_barrier %y : tensor<$Nx$Bxf32>
  %z = stablehlo.sine %o : tensor<$Nx$Bxf32>
  return %z : tensor<$Nx$Bxf32>
}
