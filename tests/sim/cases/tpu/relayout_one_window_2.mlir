// How much an operation of its own takes in one window.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=1024 M=1280
// EXPECT tpu-v5e: cycles 23458 ±7%
// WITH N=1370 M=1840
// EXPECT tpu-v6e: cycles 15084 ±7%
func.func public @main(%a: tensor<$Nx$Mxf32>) -> tensor<$Nxf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<$Nx$Mxf32>, tensor<f32>) -> tensor<$Nxf32>
  return %s : tensor<$Nxf32>
}
