// A stack that one loop writes and another reads, and a sum that the second begins with: in a list they would be
// made before what lies between the loops, so that the order is another one.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: peak 11021312 ±2.5%
// EXPECT tpu-v5e: peak 15995904 ±2%
!x = tensor<512x256xf32>
!w = tensor<256x256xf32>
!v = tensor<256x2048xf32>
!l = tensor<512x2048xf32>
!ws = tensor<6x256x256xf32>
!xs = tensor<6x512x256xf32>
!i = tensor<i32>
func.func public @main(%w: !ws {jax.buffer_donor = true}, %v: !v {jax.buffer_donor = true}, %x: !x) -> (!ws, !v) {
  %o = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<f32>) -> !xs
  %a = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<f32>) -> !ws
  %c = stablehlo.constant dense<0> : !i
  %one = stablehlo.constant dense<1> : !i
  %n = stablehlo.constant dense<6> : !i
  %f:4 = stablehlo.while(%fw = %w, %i = %c, %h = %x, %st = %s) : !ws, !i, !x, !xs
  cond {
    %q = stablehlo.compare LT, %i, %n, SIGNED : (!i, !i) -> tensor<i1>
    stablehlo.return %q : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %fw, %i, %c, %c, sizes = [1, 256, 256] : (!ws, !i, !i, !i) -> tensor<1x256x256xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x256x256xf32>) -> !w
    %3 = stablehlo.dot_general %h, %2, contracting_dims = [1] x [0] : (!x, !w) -> !x
    %4 = stablehlo.tanh %3 : !x
    %5 = stablehlo.reshape %h : (!x) -> tensor<1x512x256xf32>
    %6 = stablehlo.dynamic_update_slice %st, %5, %i, %c, %c : (!xs, tensor<1x512x256xf32>, !i, !i, !i) -> !xs
    %7 = stablehlo.add %i, %one : !i
    stablehlo.return %fw, %7, %4, %6 : !ws, !i, !x, !xs
  }
  %z = stablehlo.dot_general %f#2, %v, contracting_dims = [1] x [0] : (!x, !v) -> !l
  %t = stablehlo.tanh %z : !l
  %g = stablehlo.dot_general %t, %v, contracting_dims = [1] x [1] : (!l, !v) -> !x
  %dv = stablehlo.dot_general %f#2, %t, contracting_dims = [0] x [0] : (!x, !l) -> !v
  %b:5 = stablehlo.while(%bw = %w, %bs = %f#3, %i = %c, %d = %g, %ac = %a) : !ws, !xs, !i, !x, !ws
  cond {
    %q = stablehlo.compare LT, %i, %n, SIGNED : (!i, !i) -> tensor<i1>
    stablehlo.return %q : tensor<i1>
  } do {
    %m = stablehlo.subtract %n, %i : !i
    %k = stablehlo.subtract %m, %one : !i
    %1 = stablehlo.dynamic_slice %bw, %k, %c, %c, sizes = [1, 256, 256] : (!ws, !i, !i, !i) -> tensor<1x256x256xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x256x256xf32>) -> !w
    %3 = stablehlo.dynamic_slice %bs, %k, %c, %c, sizes = [1, 512, 256] : (!xs, !i, !i, !i) -> tensor<1x512x256xf32>
    %4 = stablehlo.reshape %3 : (tensor<1x512x256xf32>) -> !x
    %5 = stablehlo.dot_general %4, %d, contracting_dims = [0] x [0] : (!x, !x) -> !w
    %6 = stablehlo.reshape %5 : (!w) -> tensor<1x256x256xf32>
    %7 = stablehlo.dynamic_update_slice %ac, %6, %k, %c, %c : (!ws, tensor<1x256x256xf32>, !i, !i, !i) -> !ws
    %8 = stablehlo.dot_general %d, %2, contracting_dims = [1] x [1] : (!x, !w) -> !x
    %9 = stablehlo.add %i, %one : !i
    stablehlo.return %bw, %bs, %9, %8, %7 : !ws, !xs, !i, !x, !ws
  }
  %nw = stablehlo.subtract %w, %b#4 : !ws
  %nv = stablehlo.subtract %v, %dv : !v
  return %nw, %nv : !ws, !v
}
