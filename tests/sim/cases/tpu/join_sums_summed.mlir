// What is summed up and also stored, rounded, is computed once.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: kernels 1
func.func public @main(%x: tensor<512x256xbf16>, %y: tensor<512x256xf32>) -> (tensor<512x256xbf16>, tensor<256xf32>) {
  %o = stablehlo.constant dense<0.0> : tensor<f32>
  %w = stablehlo.convert %x : (tensor<512x256xbf16>) -> tensor<512x256xf32>
  %a = stablehlo.multiply %w, %y : tensor<512x256xf32>
  %b = stablehlo.convert %a : (tensor<512x256xf32>) -> tensor<512x256xbf16>
  %c = stablehlo.reduce(%a init: %o) applies stablehlo.add across dimensions = [0] : (tensor<512x256xf32>, tensor<f32>) -> tensor<256xf32>
  return %b, %c : tensor<512x256xbf16>, tensor<256xf32>
}
