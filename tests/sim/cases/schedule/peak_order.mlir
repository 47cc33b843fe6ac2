// Two branches of which each needs a large array for a moment: one after the other, not both first.
// TRUTH by construction
// EXPECT tpu-v2: temp 67108864..100663296
func.func @main(%a: tensor<4096x128xf32>, %w: tensor<128x4096xf32>) -> tensor<4096x128xf32> {
  %0 = stablehlo.dot %a, %w : (tensor<4096x128xf32>, tensor<128x4096xf32>) -> tensor<4096x4096xf32>
  %1 = stablehlo.negate %w : tensor<128x4096xf32>
  %2 = stablehlo.dot %a, %1 : (tensor<4096x128xf32>, tensor<128x4096xf32>) -> tensor<4096x4096xf32>
  %3 = stablehlo.dot %0, %a : (tensor<4096x4096xf32>, tensor<4096x128xf32>) -> tensor<4096x128xf32>
  %4 = stablehlo.dot %2, %a : (tensor<4096x4096xf32>, tensor<4096x128xf32>) -> tensor<4096x128xf32>
  %5 = stablehlo.add %3, %4 : tensor<4096x128xf32>
  return %5 : tensor<4096x128xf32>
}
