// A round writes four slices of stacks: three are made of one array and share a kernel, which counts its stacks
// twice, as they come and as they go.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: peak 20995584 ±1%
// EXPECT tpu-v4: peak 20995584 ±1%
!h = tensor<64x192xf32>
!g = tensor<64x384xf32>
!w = tensor<192x384xf32>
!s = tensor<28x64x192xf32>
!u = tensor<1x64x192xf32>
!i = tensor<i32>
func.func public @main(%h: !h, %w: !w, %a: !h) -> (!h, !s, !s, !s, !s) {
  %o = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<f32>) -> !s
  %z = stablehlo.constant dense<0> : !i
  %r:6 = stablehlo.while(%i = %z, %y = %h, %p = %e, %q = %e, %t = %e, %v = %e) : !i, !h, !s, !s, !s, !s
  cond {
    %n = stablehlo.constant dense<28> : !i
    %c = stablehlo.compare LT, %i, %n, SIGNED : (!i, !i) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %d = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (!h, !w) -> !g
    %f = stablehlo.tanh %d : !g
    %k = stablehlo.slice %f [0:64, 0:192] : (!g) -> !h
    %l = stablehlo.slice %f [0:64, 192:384] : (!g) -> !h
    %m = stablehlo.multiply %k, %a : !h
    %x = stablehlo.add %l, %m : !h
    %k1 = stablehlo.reshape %k : (!h) -> !u
    %l1 = stablehlo.reshape %l : (!h) -> !u
    %m1 = stablehlo.reshape %m : (!h) -> !u
    %y1 = stablehlo.reshape %y : (!h) -> !u
    %p1 = stablehlo.dynamic_update_slice %p, %k1, %i, %z, %z : (!s, !u, !i, !i, !i) -> !s
    %q1 = stablehlo.dynamic_update_slice %q, %l1, %i, %z, %z : (!s, !u, !i, !i, !i) -> !s
    %t1 = stablehlo.dynamic_update_slice %t, %m1, %i, %z, %z : (!s, !u, !i, !i, !i) -> !s
    %v1 = stablehlo.dynamic_update_slice %v, %y1, %i, %z, %z : (!s, !u, !i, !i, !i) -> !s
    %j = stablehlo.constant dense<1> : !i
    %i1 = stablehlo.add %i, %j : !i
    stablehlo.return %i1, %x, %p1, %q1, %t1, %v1 : !i, !h, !s, !s, !s, !s
  }
  %b = stablehlo.negate %r#2 : !s
  %b2 = stablehlo.negate %r#3 : !s
  %b3 = stablehlo.negate %r#4 : !s
  %b4 = stablehlo.negate %r#5 : !s
  return %r#1, %b, %b2, %b3, %b4 : !h, !s, !s, !s, !s
}
