// The sum of what a product's kernel writes beside it lies as that does, not as the operands, which have as many
// elements.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: arrays([256,2,16]{2,1,0}) >0, arrays([256,2,16]{0,2,1}) 0
func.func public @main(%q: tensor<256x16x2x16xf32>, %k: tensor<256x16x2x16xf32>) -> (tensor<256xf32>, tensor<256x2x16x16xf32>) {
  %o = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<256x16x2x16xf32>, tensor<256x16x2x16xf32>) -> tensor<256x2x16x16xf32>
  %r = stablehlo.reduce(%s init: %o) applies stablehlo.add across dimensions = [3] : (tensor<256x2x16x16xf32>, tensor<f32>) -> tensor<256x2x16xf32>
  %t = stablehlo.sine %r : tensor<256x2x16xf32>
  %b = stablehlo.broadcast_in_dim %t, dims = [0, 1, 2] : (tensor<256x2x16xf32>) -> tensor<256x2x16x16xf32>
  %e = stablehlo.multiply %s, %b : tensor<256x2x16x16xf32>
  %v = stablehlo.reduce(%r init: %o) applies stablehlo.add across dimensions = [1, 2] : (tensor<256x2x16xf32>, tensor<f32>) -> tensor<256xf32>
  return %v, %e : tensor<256xf32>, tensor<256x2x16x16xf32>
}
