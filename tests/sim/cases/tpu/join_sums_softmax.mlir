// A softmax of a narrow array is one kernel if what it is taken over lies in tiles; its cycles as the compiler has
// them.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=1 M=32 K=512 A=150 T=bf16
// EXPECT tpu-v6e: kernels 3
// WITH N=16 M=6 K=256 A=64 T=f32
// EXPECT tpu-v4: kernels 1, cycles 25413 ±10%
// EXPECT tpu-v5e: kernels 1, cycles 52163 ±10%
// EXPECT tpu-v6e: kernels 1, cycles 23207 ±10%
// WITH N=8 M=12 K=128 A=128 T=bf16
// EXPECT tpu-v4: kernels 1, cycles 22423 ±10%
// EXPECT tpu-v5p: kernels 1, cycles 19936 ±10%
// EXPECT tpu7x: kernels 1, cycles 17167 ±10%
func.func public @main(%x: tensor<$Nx$Mx$Kx$Ax$T>) -> tensor<$Nx$Mx$Kx$Ax$T> {
  %l = stablehlo.constant dense<-1.0e30> : tensor<$T>
  %z = stablehlo.constant dense<0.0> : tensor<$T>
  %m = stablehlo.reduce(%x init: %l) applies stablehlo.maximum across dimensions = [3] : (tensor<$Nx$Mx$Kx$Ax$T>, tensor<$T>) -> tensor<$Nx$Mx$Kx$T>
  %b = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (tensor<$Nx$Mx$Kx$T>) -> tensor<$Nx$Mx$Kx$Ax$T>
  %d = stablehlo.subtract %x, %b : tensor<$Nx$Mx$Kx$Ax$T>
  %e = stablehlo.exponential %d : tensor<$Nx$Mx$Kx$Ax$T>
  %s = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [3] : (tensor<$Nx$Mx$Kx$Ax$T>, tensor<$T>) -> tensor<$Nx$Mx$Kx$T>
  %c = stablehlo.broadcast_in_dim %s, dims = [0, 1, 2] : (tensor<$Nx$Mx$Kx$T>) -> tensor<$Nx$Mx$Kx$Ax$T>
  %q = stablehlo.divide %e, %c : tensor<$Nx$Mx$Kx$Ax$T>
  return %q : tensor<$Nx$Mx$Kx$Ax$T>
}
