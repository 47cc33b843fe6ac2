// Rows of one element are a vector, not one of 128 lanes each.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: peak 8595456 ±2%
func.func public @main(%a: tensor<3500x1xf32>, %b: tensor<3500x1xf32>, %s: tensor<16000x1xi32>, %d: tensor<16000x1xi32>, %h: tensor<16000x128xf32>) -> tensor<128xf32> {
  %0 = "stablehlo.gather"(%a, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<3500x1xf32>, tensor<16000x1xi32>) -> tensor<16000x1xf32>
  %1 = "stablehlo.gather"(%b, %d) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<3500x1xf32>, tensor<16000x1xi32>) -> tensor<16000x1xf32>
  %2 = stablehlo.add %0, %1 : tensor<16000x1xf32>
  %3 = stablehlo.exponential %2 : tensor<16000x1xf32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<16000x1xf32>) -> tensor<16000x128xf32>
  %5 = stablehlo.multiply %h, %4 : tensor<16000x128xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%5 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<16000x128xf32>, tensor<f32>) -> tensor<128xf32>
  return %r : tensor<128xf32>
}
