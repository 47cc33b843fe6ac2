// What is put together and cut at the same place again is never put together.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: kernels 2, temp 0
func.func public @main(%a: tensor<512x30xf32>, %b: tensor<512x34xf32>) -> (tensor<512x30xf32>, tensor<512x20xf32>) {
  %c = stablehlo.concatenate %a, %b, dim = 1 : (tensor<512x30xf32>, tensor<512x34xf32>) -> tensor<512x64xf32>
  %d = stablehlo.slice %c [0:512, 0:30] : (tensor<512x64xf32>) -> tensor<512x30xf32>
  %e = stablehlo.slice %c [0:512, 40:60] : (tensor<512x64xf32>) -> tensor<512x20xf32>
  %f = stablehlo.sine %d : tensor<512x30xf32>
  %g = stablehlo.sine %e : tensor<512x20xf32>
  return %f, %g : tensor<512x30xf32>, tensor<512x20xf32>
}
