// Taps follow each other along the contracted side where as many features come out as go in, or more.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=48 M=192
// EXPECT tpu-v5e: cycles 80541 ±10%
// WITH N=64 M=48
// EXPECT tpu-v5e: cycles 39000 ±10%
// EXPECT tpu-v6e: cycles 29864 ±10%
// WITH N=80 M=96
// EXPECT tpu-v5e: cycles 51467 ±10%
// WITH N=48 M=64
// EXPECT tpu-v3: cycles 83035 ±10%
// EXPECT tpu-v4: cycles 16417 ±10%
// WITH N=48 M=32
// EXPECT tpu-v6e: cycles 23577 ±10%
func.func public @main(%x: tensor<256x12x12x$Nxf32>, %w: tensor<3x3x$Nx$Mxf32>) -> tensor<256x12x12x$Mxf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<256x12x12x$Nxf32>, tensor<3x3x$Nx$Mxf32>) -> tensor<256x12x12x$Mxf32>
  return %y : tensor<256x12x12x$Mxf32>
}
