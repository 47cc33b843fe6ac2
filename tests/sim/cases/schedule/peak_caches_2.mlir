// What comes back with a row written into it is a cache, not a parameter that learns; a step that is only taken
// where its loss is finite is training all the same.
// TRUTH by construction
// EXPECT tpu-v5e: training 1, held(caches) 0
func.func public @main(%x: tensor<8x64xf32>, %w: tensor<64x64xf32> {jax.buffer_donor = true}, %ok: tensor<i1>) -> tensor<64x64xf32> {
  %g = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
  %n = stablehlo.subtract %w, %g : tensor<64x64xf32>
  %s = stablehlo.select %ok, %n, %w : tensor<i1>, tensor<64x64xf32>
  return %s : tensor<64x64xf32>
}
