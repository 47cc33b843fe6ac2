// Sums come in the order of what they sum up; where results have another one they are turned, and what is not the
// only kernel has nothing fetched ahead.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=64 M=128 K=318 T=f32
// EXPECT tpu-v6e: peak 10682880 ±1%, cycles 67073 ±7%
// WITH N=16 M=1024 K=300 T=bf16
// EXPECT tpu-v5p: peak 9921024 ±1%, cycles 67036 ±7%
func.func public @main(%a: tensor<$Nx$Mx$Kx$T>) -> tensor<$Nx$Kx$T> {
  %z = stablehlo.constant dense<0.0> : tensor<$T>
  %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<$Nx$Mx$Kx$T>, tensor<$T>) -> tensor<$Nx$Kx$T>
  return %s : tensor<$Nx$Kx$T>
}
