// Results are written over the turned copies of what they update.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: peak 34691072 ±2%
func.func public @main(%e: tensor<7000x192xf32> {tf.aliasing_output = 0 : i32}, %v: tensor<7000x192xf32> {tf.aliasing_output = 1 : i32}, %i: tensor<3000x1xi32>, %g: tensor<3000x192xf32>) -> (tensor<7000x192xf32>, tensor<7000x192xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<7000x192xf32>
  %s = "stablehlo.scatter"(%z, %i, %g) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %t = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<7000x192xf32>, tensor<3000x1xi32>, tensor<3000x192xf32>) -> tensor<7000x192xf32>
  %2 = stablehlo.multiply %s, %s : tensor<7000x192xf32>
  %w = stablehlo.add %v, %2 : tensor<7000x192xf32>
  %c = stablehlo.constant dense<1.0e-01> : tensor<7000x192xf32>
  %3 = stablehlo.multiply %c, %s : tensor<7000x192xf32>
  %p = stablehlo.constant dense<1.0e-08> : tensor<7000x192xf32>
  %4 = stablehlo.add %w, %p : tensor<7000x192xf32>
  %5 = stablehlo.rsqrt %4 : tensor<7000x192xf32>
  %6 = stablehlo.multiply %3, %5 : tensor<7000x192xf32>
  %f = stablehlo.subtract %e, %6 : tensor<7000x192xf32>
  return %f, %w : tensor<7000x192xf32>, tensor<7000x192xf32>
}
