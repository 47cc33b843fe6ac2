// Of two dimensions of rows the one that pads less lies beside the columns.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: arrays(491520 bytes) >0
func.func public @main(%x: tensor<480x96xf32>, %w: tensor<96x256xf32>) -> (tensor<24x20xf32>, tensor<256xf32>) {
  %o = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.reshape %x : (tensor<480x96xf32>) -> tensor<24x20x96xf32>
  %p = stablehlo.dot_general %y, %w, contracting_dims = [2] x [0] : (tensor<24x20x96xf32>, tensor<96x256xf32>) -> tensor<24x20x256xf32>
  %s = stablehlo.reduce(%p init: %o) applies stablehlo.add across dimensions = [2] : (tensor<24x20x256xf32>, tensor<f32>) -> tensor<24x20xf32>
  %b = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<24x20xf32>) -> tensor<24x20x256xf32>
  %d = stablehlo.subtract %p, %b : tensor<24x20x256xf32>
  %e = stablehlo.sine %d : tensor<24x20x256xf32>
  %t = stablehlo.reduce(%e init: %o) applies stablehlo.add across dimensions = [0, 1] : (tensor<24x20x256xf32>, tensor<f32>) -> tensor<256xf32>
  return %s, %t : tensor<24x20xf32>, tensor<256xf32>
}
