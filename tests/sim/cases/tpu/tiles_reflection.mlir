// Two columns reflected on either side, which jax.numpy puts together one after the other.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 4378 ±7%, peak 327680 ±7%
func.func public @main(%x: tensor<64x256xf32>) -> tensor<64x260xf32> {
  %a = stablehlo.slice %x [0:64, 1:3] : (tensor<64x256xf32>) -> tensor<64x2xf32>
  %b = stablehlo.reverse %a, dims = [1] : tensor<64x2xf32>
  %c = stablehlo.concatenate %b, %x, dim = 1 : (tensor<64x2xf32>, tensor<64x256xf32>) -> tensor<64x258xf32>
  %d = stablehlo.slice %x [0:64, 253:255] : (tensor<64x256xf32>) -> tensor<64x2xf32>
  %e = stablehlo.reverse %d, dims = [1] : tensor<64x2xf32>
  %y = stablehlo.concatenate %c, %e, dim = 1 : (tensor<64x258xf32>, tensor<64x2xf32>) -> tensor<64x260xf32>
  return %y : tensor<64x260xf32>
}
