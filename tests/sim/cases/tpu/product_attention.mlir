// Attention that only goes forwards, of short rows: the product that divides the exponentials finds the largest of
// each row as well, in a pass before.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: cycles 17222 ±2%
!x = tensor<4x96x256xbf16>
!w = tensor<256x256xbf16>
!h = tensor<4x96x4x64xbf16>
!b = tensor<4x4x96x96xbf16>
!s = tensor<4x4x96x96xf32>
!r = tensor<4x4x96xf32>
!o = tensor<4x4x64x96xbf16>
func.func public @main(%x: !x, %wq: !w, %wk: !w, %wv: !w, %wo: !w) -> !x {
  %ql = stablehlo.dot_general %x, %wq, contracting_dims = [2] x [0] : (!x, !w) -> !x
  %kl = stablehlo.dot_general %x, %wk, contracting_dims = [2] x [0] : (!x, !w) -> !x
  %vl = stablehlo.dot_general %x, %wv, contracting_dims = [2] x [0] : (!x, !w) -> !x
  %q = stablehlo.reshape %ql : (!x) -> !h
  %k = stablehlo.reshape %kl : (!x) -> !h
  %v = stablehlo.reshape %vl : (!x) -> !h
  %c = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (!h, !h) -> !b
  %w = stablehlo.convert %c : (!b) -> !s
  %f = stablehlo.constant dense<0.125> : !s
  %s = stablehlo.multiply %w, %f : !s
  %l = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%s init: %l) applies stablehlo.maximum across dimensions = [3] : (!s, tensor<f32>) -> !r
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1, 2] : (!r) -> !s
  %d = stablehlo.subtract %s, %mb : !s
  %e = stablehlo.exponential %d : !s
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [3] : (!s, tensor<f32>) -> !r
  %nb = stablehlo.broadcast_in_dim %n, dims = [0, 1, 2] : (!r) -> !s
  %pw = stablehlo.divide %e, %nb : !s
  %p = stablehlo.convert %pw : (!s) -> !b
  %o = stablehlo.dot_general %v, %p, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (!h, !b) -> !o
  %t = stablehlo.transpose %o, dims = [0, 3, 1, 2] : (!o) -> !h
  %j = stablehlo.reshape %t : (!h) -> !x
  %y = stablehlo.dot_general %j, %wo, contracting_dims = [2] x [0] : (!x, !w) -> !x
  %a = stablehlo.add %x, %y : !x
  return %a : !x
}
