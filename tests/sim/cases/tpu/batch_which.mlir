// From which batch on a convolution stays as it is.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=1
// EXPECT tpu-v2: kernels 7..9, kernels(convolution) 1
// EXPECT tpu-v3: kernels 7..9, kernels(convolution) 1
// WITH N=2
// EXPECT tpu-v2: kernels 1..3, kernels(convolution) 1
// EXPECT tpu-v3: kernels 1..3, kernels(convolution) 1
// WITH N=7
// EXPECT tpu-v4: kernels 7..9, kernels(convolution) 1
// EXPECT tpu-v5e: kernels 7..9, kernels(convolution) 1
// EXPECT tpu-v5p: kernels 7..9, kernels(convolution) 1
// EXPECT tpu-v6e: kernels 7..9, kernels(convolution) 1
// EXPECT tpu7x: kernels 7..9, kernels(convolution) 1
// WITH N=8
// EXPECT tpu-v4: kernels 1..3, kernels(convolution) 1
// EXPECT tpu-v5e: kernels 1..3, kernels(convolution) 1
// EXPECT tpu-v5p: kernels 1..3, kernels(convolution) 1
// EXPECT tpu-v6e: kernels 1..3, kernels(convolution) 1
// EXPECT tpu7x: kernels 1..3, kernels(convolution) 1
func.func public @main(%x: tensor<$Nx24x40x64xbf16>, %w: tensor<3x3x64x64xbf16>) -> tensor<$Nx24x40x64xbf16> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<$Nx24x40x64xbf16>, tensor<3x3x64x64xbf16>) -> tensor<$Nx24x40x64xbf16>
  return %y : tensor<$Nx24x40x64xbf16>
}
