// Towards the image of a depthwise convolution with several results for each feature: several features in a group and one that
// comes out. The groups get a dimension of their own, and each tap of each position is a product of its own, with images in lanes
// (in sublanes where there are eight).
// TRUTH libtpu 0.0.51, compiled ahead of time: 926040, 467968, 3642274; 238217, 116992, 918317, 122011; 1809920, 229376
// WITH B=6 H=56 W=56 C=48 K=3
// EXPECT tpu-v5e: cycles(convolution) 926040 ±5%, peak 88172544 ±3%
// EXPECT tpu-v6e: cycles(convolution) 467968 ±5%, peak 88172544 ±3%
// EXPECT tpu-v2: cycles(convolution) 3642274 ±5%
// WITH B=16 H=28 W=28 C=48 K=3
// EXPECT tpu-v5e: cycles(convolution) 238217 ±6%
// EXPECT tpu-v6e: cycles(convolution) 116992 ±5%
// EXPECT tpu-v2: cycles(convolution) 918317 ±5%
// WITH B=256 H=14 W=14 C=48 K=3
// EXPECT tpu-v5e: cycles(convolution) 122011 ±6%, peak 21653504 ±11%
// WITH B=8 H=28 W=28 C=48 K=3
// EXPECT tpu-v5e: cycles(convolution) 1809920 ±3%
// WITH B=8 H=28 W=28 C=80 K=5
// EXPECT tpu-v5e: cycles(convolution) 229376 ±5%
func.func public @main(%a: tensor<${B}x${H}x${W}x${C}xf32>, %w: tensor<3x3x${K}x16xf32>) -> tensor<${B}x${H}x${W}x16xf32> {
  %0 = stablehlo.convolution(%a, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 16 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<${B}x${H}x${W}x${C}xf32>, tensor<3x3x${K}x16xf32>) -> tensor<${B}x${H}x${W}x16xf32>
  return %0 : tensor<${B}x${H}x${W}x16xf32>
}
