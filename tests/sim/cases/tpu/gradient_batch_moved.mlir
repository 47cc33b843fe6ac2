// TRUTH libtpu 0.0.51, compiled ahead of time: the images' batch lies in lanes, the other operand's outside of its tiles
// EXPECT tpu-v2: cycles 20241 ±2%
// EXPECT tpu-v4: cycles 5694 ±8%
// EXPECT tpu-v5e: cycles 9541 ±6%
// EXPECT tpu-v5p: cycles 7295 ±9%
func.func public @main(%images: tensor<128x8x8x16xbf16>, %gradient: tensor<128x8x8x256xbf16>) -> tensor<1x1x16x256xbf16> {
  %0 = stablehlo.convolution(%images, %gradient) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<128x8x8x16xbf16>, tensor<128x8x8x256xbf16>) -> tensor<1x1x16x256xbf16>
  return %0 : tensor<1x1x16x256xbf16>
}
