// The only result of a product: what is made of it, element by element in another product, is written over it. peak_named_1 is
// the same with sums of its columns beside it.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: peak 9049088 ±1%
func.func public @main(%x: tensor<1024x512xf32>, %w: tensor<512x1024xf32>, %i: tensor<64x1xi32>, %v: tensor<1024x64xf32>) -> (tensor<64x1024xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1024x512xf32>, tensor<512x1024xf32>) -> tensor<1024x1024xf32>
  %e = stablehlo.tanh %0 : tensor<1024x1024xf32>
  %g = "stablehlo.gather"(%e, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1024>}> : (tensor<1024x1024xf32>, tensor<64x1xi32>) -> tensor<64x1024xf32>
  %z = stablehlo.dot_general %v, %g, contracting_dims = [1] x [0] : (tensor<1024x64xf32>, tensor<64x1024xf32>) -> tensor<1024x1024xf32>
  %m = stablehlo.add %e, %z : tensor<1024x1024xf32>
  %q = "stablehlo.gather"(%m, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1024>}> : (tensor<1024x1024xf32>, tensor<64x1xi32>) -> tensor<64x1024xf32>
  return %q : tensor<64x1024xf32>
}
