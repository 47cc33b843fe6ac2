// Wide matrices times a vector each stay a product; narrow ones, vectors times vectors, and matrices in lanes, do
// not; on TPU7x these alone.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=32 M=64 K=128 T=f32
// EXPECT tpu-v5e: peak 2129920 ±1%
// WITH N=128 M=32 K=64 T=bf16
// EXPECT tpu-v2: cycles 4170 ±10%
func.func public @main(%a: tensor<$Nx$Mx$Kx$T>, %v: tensor<$Nx$Kx$T>) -> tensor<$Nx$Mx$T> {
  %y = stablehlo.dot_general %a, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<$Nx$Mx$Kx$T>, tensor<$Nx$Kx$T>) -> tensor<$Nx$Mx$T>
  return %y : tensor<$Nx$Mx$T>
}
