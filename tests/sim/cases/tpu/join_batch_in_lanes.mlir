// An array made of two of its size for two convolutions: each makes it again, but where the batch lies in lanes it
// is stored for those of single pixels.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=8 M=128 K=1 A=0
// EXPECT tpu-v2: kernels(multiply) 0
// WITH N=128 M=64 K=1 A=0
// EXPECT tpu-v2: kernels(multiply) 1
// WITH N=128 M=64 K=3 A=1
// EXPECT tpu-v2: kernels(multiply) 0
func.func public @main(%a: tensor<$Nx14x14x$Mxbf16>, %b: tensor<$Nx14x14x$Mxbf16>, %v: tensor<$Kx$Kx$Mx$Mxbf16>, %w: tensor<$Kx$Kx$Mx$Mxbf16>) -> (tensor<$Nx14x14x$Mxbf16>, tensor<$Nx14x14x$Mxbf16>) {
  %c = stablehlo.multiply %a, %b : tensor<$Nx14x14x$Mxbf16>
  %p = stablehlo.convolution(%c, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[$A, $A], [$A, $A]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<$Nx14x14x$Mxbf16>, tensor<$Kx$Kx$Mx$Mxbf16>) -> tensor<$Nx14x14x$Mxbf16>
  %q = stablehlo.convolution(%c, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[$A, $A], [$A, $A]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<$Nx14x14x$Mxbf16>, tensor<$Kx$Kx$Mx$Mxbf16>) -> tensor<$Nx14x14x$Mxbf16>
  return %p, %q : tensor<$Nx14x14x$Mxbf16>, tensor<$Nx14x14x$Mxbf16>
}
