// Heads come out of a product, are widened in its kernel and lie as it writes them; two halves are turned and put
// together by a kernel of its own, as heads become features in the next product.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 66582 ±10%, peak 10027008 ±3%
// EXPECT tpu-v5e: cycles 38154 ±10%, peak 13238272 ±3%, kernels(concatenate) 1
// EXPECT tpu-v6e: peak 13238272 ±1%
func.func @main(%s: tensor<4x8x256x256xbf16>, %k: tensor<4x256x8x64xbf16>, %w: tensor<512x512xbf16>, %cos: tensor<256x32xf32>, %sin: tensor<256x32xf32>) -> tensor<4x256x512xbf16> {
  %0 = stablehlo.dot_general %k, %s, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<4x256x8x64xbf16>, tensor<4x8x256x256xbf16>) -> tensor<4x8x64x256xbf16>
  %1 = stablehlo.transpose %0, dims = [0, 3, 1, 2] : (tensor<4x8x64x256xbf16>) -> tensor<4x256x8x64xbf16>
  %2 = stablehlo.convert %1 : (tensor<4x256x8x64xbf16>) -> tensor<4x256x8x64xf32>
  %3 = stablehlo.slice %2 [0:4, 0:256, 0:8, 0:32] : (tensor<4x256x8x64xf32>) -> tensor<4x256x8x32xf32>
  %4 = stablehlo.slice %2 [0:4, 0:256, 0:8, 32:64] : (tensor<4x256x8x64xf32>) -> tensor<4x256x8x32xf32>
  %c = stablehlo.broadcast_in_dim %cos, dims = [1, 3] : (tensor<256x32xf32>) -> tensor<4x256x8x32xf32>
  %d = stablehlo.broadcast_in_dim %sin, dims = [1, 3] : (tensor<256x32xf32>) -> tensor<4x256x8x32xf32>
  %5 = stablehlo.multiply %3, %c : tensor<4x256x8x32xf32>
  %6 = stablehlo.multiply %4, %d : tensor<4x256x8x32xf32>
  %7 = stablehlo.add %5, %6 : tensor<4x256x8x32xf32>
  %8 = stablehlo.multiply %4, %c : tensor<4x256x8x32xf32>
  %9 = stablehlo.multiply %3, %d : tensor<4x256x8x32xf32>
  %10 = stablehlo.subtract %8, %9 : tensor<4x256x8x32xf32>
  %11 = stablehlo.concatenate %7, %10, dim = 3 : (tensor<4x256x8x32xf32>, tensor<4x256x8x32xf32>) -> tensor<4x256x8x64xf32>
  %12 = stablehlo.convert %11 : (tensor<4x256x8x64xf32>) -> tensor<4x256x8x64xbf16>
  %13 = stablehlo.reshape %12 : (tensor<4x256x8x64xbf16>) -> tensor<4x256x512xbf16>
  %14 = stablehlo.dot_general %13, %w, contracting_dims = [2] x [0] : (tensor<4x256x512xbf16>, tensor<512x512xbf16>) -> tensor<4x256x512xbf16>
  return %14 : tensor<4x256x512xbf16>
}
