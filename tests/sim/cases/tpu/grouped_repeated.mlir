// Keys that are repeated for each head are stored so.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 53865 ±10%, peak 7733248 ±3%
// EXPECT tpu-v5e: cycles 48098 ±10%, peak 8781824 ±3%
!h = tensor<4x256x8x64xbf16>
!o = tensor<4x8x256x256xbf16>
func.func @main(%x: tensor<4x256x512xbf16>, %w: tensor<512x128xbf16>, %q: !h) -> !o {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<4x256x512xbf16>, tensor<512x128xbf16>) -> tensor<4x256x128xbf16>
  %1 = stablehlo.reshape %0 : (tensor<4x256x128xbf16>) -> tensor<4x256x2x64xbf16>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2, 4] : (tensor<4x256x2x64xbf16>) -> tensor<4x256x2x4x64xbf16>
  %3 = stablehlo.reshape %2 : (tensor<4x256x2x4x64xbf16>) -> !h
  %4 = stablehlo.dot_general %q, %3, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (!h, !h) -> !o
  return %4 : !o
}
