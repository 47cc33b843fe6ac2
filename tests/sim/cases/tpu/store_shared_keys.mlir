// Three heads share their keys and values: the scores, two sides of them the queries', are stored as the product
// makes them, and their exponentials computed again for each reader.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: cycles 29440 ±6%
!q = tensor<2x160x2x3x64xbf16>
!k = tensor<2x160x2x64xbf16>
!n = tensor<2x2x3x160x160xbf16>
!s = tensor<2x2x3x160x160xf32>
!r = tensor<2x2x3x160xf32>
!f = tensor<f32>
!t = tensor<2x2x64x3x160xbf16>
func.func public @main(%q: !q, %k: !k, %v: !k, %g: !q) -> (!q, !q, !k, !k) {
  %z = stablehlo.constant dense<0.0> : !f
  %i = stablehlo.constant dense<0xFF800000> : !f
  %c = stablehlo.constant dense<0.125> : !s
  %0 = stablehlo.dot_general %k, %q, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4] : (!k, !q) -> tensor<2x2x160x160x3xbf16>
  %1 = stablehlo.transpose %0, dims = [0, 1, 4, 3, 2] : (tensor<2x2x160x160x3xbf16>) -> !n
  %2 = stablehlo.convert %1 : (!n) -> !s
  %3 = stablehlo.multiply %2, %c : !s
  %4 = stablehlo.reduce(%3 init: %i) applies stablehlo.maximum across dimensions = [4] : (!s, !f) -> !r
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3] : (!r) -> !s
  %6 = stablehlo.subtract %3, %5 : !s
  %e = stablehlo.exponential %6 : !s
  %7 = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [4] : (!s, !f) -> !r
  %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2, 3] : (!r) -> !s
  %9 = stablehlo.divide %e, %8 : !s
  %p = stablehlo.convert %9 : (!s) -> !n
  %10 = stablehlo.dot_general %v, %p, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [4] : (!k, !n) -> !t
  %11 = stablehlo.transpose %10, dims = [0, 4, 1, 3, 2] : (!t) -> !q
  %12 = stablehlo.transpose %g, dims = [0, 2, 4, 3, 1] : (!q) -> !t
  %13 = stablehlo.dot_general %12, %v, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3] : (!t, !k) -> !n
  %14 = stablehlo.dot_general %12, %p, batching_dims = [0, 1] x [0, 1], contracting_dims = [3, 4] x [2, 3] : (!t, !n) -> tensor<2x2x64x160xbf16>
  %15 = stablehlo.transpose %14, dims = [0, 3, 1, 2] : (tensor<2x2x64x160xbf16>) -> !k
  %16 = stablehlo.convert %13 : (!n) -> !s
  %17 = stablehlo.multiply %16, %9 : !s
  %18 = stablehlo.reduce(%17 init: %z) applies stablehlo.add across dimensions = [4] : (!s, !f) -> !r
  %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2, 3] : (!r) -> !s
  %20 = stablehlo.subtract %16, %19 : !s
  %21 = stablehlo.multiply %20, %9 : !s
  %22 = stablehlo.multiply %21, %c : !s
  %23 = stablehlo.convert %22 : (!s) -> !n
  %24 = stablehlo.transpose %23, dims = [0, 1, 4, 3, 2] : (!n) -> tensor<2x2x160x160x3xbf16>
  %25 = stablehlo.dot_general %24, %k, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1] : (tensor<2x2x160x160x3xbf16>, !k) -> tensor<2x2x160x3x64xbf16>
  %26 = stablehlo.transpose %25, dims = [0, 2, 1, 3, 4] : (tensor<2x2x160x3x64xbf16>) -> !q
  %27 = stablehlo.dot_general %24, %q, batching_dims = [0, 1] x [0, 2], contracting_dims = [3, 4] x [1, 3] : (tensor<2x2x160x160x3xbf16>, !q) -> tensor<2x2x160x64xbf16>
  %28 = stablehlo.transpose %27, dims = [0, 2, 1, 3] : (tensor<2x2x160x64xbf16>) -> !k
  return %11, %26, %28, %15 : !q, !q, !k, !k
}
