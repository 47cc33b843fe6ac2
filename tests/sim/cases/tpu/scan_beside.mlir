// Rounds that lie beside each other in a stack's tiles are cut out by a kernel of their own; what adds them up
// reads them as they are cut.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles(dynamic_slice) 2080 ±1%, kernels(copy) 0
!a = tensor<10x24x160xbf16>
!s = tensor<24x10x160xbf16>
!c = tensor<10x160xbf16>
!i = tensor<i32>
func.func public @main(%x: tensor<10x24x64xbf16>, %w: tensor<64x160xbf16>) -> !c {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0] : (tensor<10x24x64xbf16>, tensor<64x160xbf16>) -> !a
  %t = stablehlo.tanh %y : !a
  %s = stablehlo.transpose %t, dims = [1, 0, 2] : (!a) -> !s
  %z = stablehlo.constant dense<0.0> : !c
  %o = stablehlo.constant dense<0> : !i
  %r:3 = stablehlo.while(%vs = %s, %i = %o, %c = %z) : !s, !i, !c
  cond {
    %n = stablehlo.constant dense<24> : !i
    %q = stablehlo.compare LT, %i, %n, SIGNED : (!i, !i) -> tensor<i1>
    stablehlo.return %q : tensor<i1>
  } do {
    %k = stablehlo.constant dense<0> : !i
    %d = stablehlo.dynamic_slice %vs, %i, %k, %k, sizes = [1, 10, 160] : (!s, !i, !i, !i) -> tensor<1x10x160xbf16>
    %e = stablehlo.reshape %d : (tensor<1x10x160xbf16>) -> !c
    %h = stablehlo.constant dense<0.5> : !c
    %m = stablehlo.multiply %h, %c : !c
    %g = stablehlo.add %m, %e : !c
    %l = stablehlo.constant dense<1> : !i
    %j = stablehlo.add %i, %l : !i
    stablehlo.return %vs, %j, %g : !s, !i, !c
  }
  return %r#2 : !c
}
