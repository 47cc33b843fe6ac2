// A product of no rows, or of no terms, takes the time of a kernel.
// TRUTH by construction
// WITH N=0 M=4 K=8
// EXPECT tpu-v2: cycles 100..10000
// EXPECT tpu-v4: cycles 100..10000
// EXPECT tpu-v5e: cycles 100..10000
// EXPECT tpu-v6e: cycles 100..10000
// EXPECT tpu7x: cycles 100..10000
// WITH N=64 M=0 K=128
// EXPECT tpu-v2: cycles 100..10000
// EXPECT tpu-v4: cycles 100..10000
// EXPECT tpu-v5e: cycles 100..10000
// EXPECT tpu-v6e: cycles 100..10000
// EXPECT tpu7x: cycles 100..10000
func.func public @main(%a: tensor<$Nx$Mxf32>, %b: tensor<$Mx$Kxf32>) -> tensor<$Nx$Kxf32> {
  %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<$Nx$Mxf32>, tensor<$Mx$Kxf32>) -> tensor<$Nx$Kxf32>
  return %y : tensor<$Nx$Kxf32>
}
