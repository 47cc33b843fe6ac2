// The largest of three features each: a product is written with rows in lanes for it.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: peak 3613696 ±1%
// EXPECT tpu-v6e: peak 3613184 ±1%
func.func public @main(%a: tensor<288x200xf32>, %w: tensor<200x672xf32>) -> tensor<288x224xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<288x200xf32>, tensor<200x672xf32>) -> tensor<288x672xf32>
  %1 = stablehlo.reshape %0 : (tensor<288x672xf32>) -> tensor<288x224x3xf32>
  %2 = stablehlo.reduce(%1 init: %i) applies stablehlo.maximum across dimensions = [2] : (tensor<288x224x3xf32>, tensor<f32>) -> tensor<288x224xf32>
  return %2 : tensor<288x224xf32>
}
