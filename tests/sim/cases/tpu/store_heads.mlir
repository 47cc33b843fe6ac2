// Where a head's columns do not fill the lanes, what is made of heads has its rows there.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=64 M=256
// EXPECT tpu-v3: peak 5898240 ±0.5%
// WITH N=128 M=512
// EXPECT tpu-v3: peak 6422528 ±0.5%
func.func public @main(%p: tensor<8x4x144x144xbf16>, %v: tensor<8x144x4x$Nxbf16>, %w: tensor<$Mx512xbf16>) -> tensor<8x144x512xbf16> {
  %0 = stablehlo.dot_general %v, %p, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<8x144x4x$Nxbf16>, tensor<8x4x144x144xbf16>) -> tensor<8x4x$Nx144xbf16>
  %1 = stablehlo.transpose %0, dims = [0, 3, 1, 2] : (tensor<8x4x$Nx144xbf16>) -> tensor<8x144x4x$Nxbf16>
  %2 = stablehlo.reshape %1 : (tensor<8x144x4x$Nxbf16>) -> tensor<8x144x$Mxbf16>
  %3 = stablehlo.dot_general %2, %w, contracting_dims = [2] x [0] : (tensor<8x144x$Mxbf16>, tensor<$Mx512xbf16>) -> tensor<8x144x512xbf16>
  return %3 : tensor<8x144x512xbf16>
}
