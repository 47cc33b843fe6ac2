// An update lies as what it goes into; on v2 rows of one have tiles of two.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: peak 2405376 ±0.5%
func.func public @main(%x: tensor<64x120x70xf32> {tf.aliasing_output = 0 : i32}, %u: tensor<1x120x70xf32>, %i: tensor<i32>) -> tensor<64x120x70xf32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %y = stablehlo.dynamic_update_slice %x, %u, %i, %z, %z : (tensor<64x120x70xf32>, tensor<1x120x70xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<64x120x70xf32>
  return %y : tensor<64x120x70xf32>
}
