// Sums over the same padded halves are taken together.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: kernels 1
func.func public @main(%x: tensor<256x48xf32>, %y: tensor<256x48xf32>, %z: tensor<256x96xf32>) -> (tensor<96xf32>, tensor<96xf32>) {
  %o = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.pad %x, %o, low = [0, 48], high = [0, 0], interior = [0, 0] : (tensor<256x48xf32>, tensor<f32>) -> tensor<256x96xf32>
  %b = stablehlo.pad %y, %o, low = [0, 0], high = [0, 48], interior = [0, 0] : (tensor<256x48xf32>, tensor<f32>) -> tensor<256x96xf32>
  %c = stablehlo.add %a, %b : tensor<256x96xf32>
  %d = stablehlo.multiply %c, %z : tensor<256x96xf32>
  %1 = stablehlo.reduce(%c init: %o) applies stablehlo.add across dimensions = [0] : (tensor<256x96xf32>, tensor<f32>) -> tensor<96xf32>
  %2 = stablehlo.reduce(%d init: %o) applies stablehlo.add across dimensions = [0] : (tensor<256x96xf32>, tensor<f32>) -> tensor<96xf32>
  return %1, %2 : tensor<96xf32>, tensor<96xf32>
}
