// Chunks of a sequence by heads, a chunk a round (linear attention, retention): heads, the batch of the products, lie in sublanes as the
// transposition is none. Each slice is a kernel of its own.
// TRUTH libtpu 0.0.51, compiled ahead of time: three slices of 5206 cycles; 175706, 287193
// EXPECT tpu-v5e: cycles 175706 ±6%, kernels(dynamic_slice) 3, cycles(dynamic_slice) 15618 ±3%
// EXPECT tpu-v2: cycles 287193 ±9%, kernels(dynamic_slice) 3
!x = tensor<4x256x512xbf16>
!w = tensor<512x512xbf16>
!h = tensor<4x4x64x8x64xbf16>
!c = tensor<4x4x8x64x64xbf16>
!s = tensor<4x8x64x64xbf16>
!o = tensor<1x4x8x64x64xbf16>
!i = tensor<i32>
func.func public @main(%x: !x, %wq: !w, %wk: !w, %wv: !w) -> (!s, !c) {
  %q0 = stablehlo.dot_general %x, %wq, contracting_dims = [2] x [0] : (!x, !w) -> !x
  %k0 = stablehlo.dot_general %x, %wk, contracting_dims = [2] x [0] : (!x, !w) -> !x
  %v0 = stablehlo.dot_general %x, %wv, contracting_dims = [2] x [0] : (!x, !w) -> !x
  %q1 = stablehlo.reshape %q0 : (!x) -> !h
  %k1 = stablehlo.reshape %k0 : (!x) -> !h
  %v1 = stablehlo.reshape %v0 : (!x) -> !h
  %q = stablehlo.transpose %q1, dims = [1, 0, 3, 2, 4] : (!h) -> !c
  %k = stablehlo.transpose %k1, dims = [1, 0, 3, 2, 4] : (!h) -> !c
  %v = stablehlo.transpose %v1, dims = [1, 0, 3, 2, 4] : (!h) -> !c
  %zero = stablehlo.constant dense<0.0> : !s
  %none = stablehlo.constant dense<0.0> : !c
  %0 = stablehlo.constant dense<0> : !i
  %r:6 = stablehlo.while(%a = %q, %b = %k, %c = %v, %i = %0, %s = %zero, %o = %none) : !c, !c, !c, !i, !s, !c
  cond {
    %n = stablehlo.constant dense<4> : !i
    %go = stablehlo.compare LT, %i, %n, SIGNED : (!i, !i) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %f = stablehlo.constant dense<0> : !i
    %a1 = stablehlo.dynamic_slice %a, %i, %f, %f, %f, %f, sizes = [1, 4, 8, 64, 64] : (!c, !i, !i, !i, !i, !i) -> !o
    %b1 = stablehlo.dynamic_slice %b, %i, %f, %f, %f, %f, sizes = [1, 4, 8, 64, 64] : (!c, !i, !i, !i, !i, !i) -> !o
    %c1 = stablehlo.dynamic_slice %c, %i, %f, %f, %f, %f, sizes = [1, 4, 8, 64, 64] : (!c, !i, !i, !i, !i, !i) -> !o
    %a2 = stablehlo.reshape %a1 : (!o) -> !s
    %b2 = stablehlo.reshape %b1 : (!o) -> !s
    %c2 = stablehlo.reshape %c1 : (!o) -> !s
    %p = stablehlo.dot_general %a2, %b2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (!s, !s) -> !s
    %t = stablehlo.dot_general %p, %c2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (!s, !s) -> !s
    %u = stablehlo.dot_general %a2, %s, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (!s, !s) -> !s
    %y = stablehlo.add %t, %u : !s
    %half = stablehlo.constant dense<0.5> : !s
    %d = stablehlo.multiply %s, %half : !s
    %m = stablehlo.dot_general %b2, %c2, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2] : (!s, !s) -> !s
    %s1 = stablehlo.add %d, %m : !s
    %y1 = stablehlo.reshape %y : (!s) -> !o
    %o1 = stablehlo.dynamic_update_slice %o, %y1, %i, %f, %f, %f, %f : (!c, !o, !i, !i, !i, !i, !i) -> !c
    %one = stablehlo.constant dense<1> : !i
    %i1 = stablehlo.add %i, %one : !i
    stablehlo.return %a, %b, %c, %i1, %s1, %o1 : !c, !c, !c, !i, !s, !c
  }
  return %r#4, %r#5 : !s, !c
}
