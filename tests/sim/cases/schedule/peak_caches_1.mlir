// What comes back with a row written into it is a cache, not a parameter that learns; a step that is only taken
// where its loss is finite is training all the same.
// TRUTH by construction
// EXPECT tpu-v5e: training 0, owner(0) input, owner(1) parameters, owner(2) caches, held(caches) >131071
func.func public @main(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>, %c: tensor<512x64xf32> {jax.buffer_donor = true}, %i: tensor<i32>) -> (tensor<8x512xf32>, tensor<512x64xf32>) {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %k = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %d = stablehlo.dynamic_update_slice %c, %k, %i, %z : (tensor<512x64xf32>, tensor<8x64xf32>, tensor<i32>, tensor<i32>) -> tensor<512x64xf32>
  %s = stablehlo.dot_general %x, %d, contracting_dims = [1] x [1] : (tensor<8x64xf32>, tensor<512x64xf32>) -> tensor<8x512xf32>
  return %s, %d : tensor<8x512xf32>, tensor<512x64xf32>
}
