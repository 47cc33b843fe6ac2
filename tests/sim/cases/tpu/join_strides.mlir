// Every other row is taken by a kernel of its own; parts that lie together are read on the way.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=256 M=1
// EXPECT tpu-v5e: kernels 1
// WITH N=512 M=2
// EXPECT tpu-v5e: kernels 2
func.func public @main(%a: tensor<512x128xf32>) -> tensor<256x128xf32> {
  %b = stablehlo.slice %a [0:$N:$M, 0:128] : (tensor<512x128xf32>) -> tensor<256x128xf32>
  %c = stablehlo.sine %b : tensor<256x128xf32>
  return %c : tensor<256x128xf32>
}
