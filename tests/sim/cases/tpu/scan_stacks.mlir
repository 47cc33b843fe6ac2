// A layer of weights a round, and a sum of what goes into it: only slices of the weights come on chip, but for
// chips whose products want other tiles than weights come in.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: peak 3640832 ±1%
// EXPECT tpu-v5p: peak 3395104 ±1%
// EXPECT tpu-v6e: peak 3640352 ±1%
// EXPECT tpu7x: peak 6294560 ±1%
!x = tensor<320x384xbf16>
!w = tensor<9x384x384xbf16>
!s = tensor<9xf32>
!i = tensor<i32>
func.func public @main(%x: !x, %w: !w) -> (!x, !s) {
  %o = stablehlo.constant dense<0.0> : tensor<f32>
  %e = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<f32>) -> !s
  %c = stablehlo.constant dense<0> : !i
  %r:4 = stablehlo.while(%vw = %w, %i = %c, %y = %x, %l = %e) : !w, !i, !x, !s
  cond {
    %n = stablehlo.constant dense<9> : !i
    %q = stablehlo.compare LT, %i, %n, SIGNED : (!i, !i) -> tensor<i1>
    stablehlo.return %q : tensor<i1>
  } do {
    %k = stablehlo.dynamic_slice %vw, %i, %c, %c, sizes = [1, 384, 384] : (!w, !i, !i, !i) -> tensor<1x384x384xbf16>
    %m = stablehlo.reshape %k : (tensor<1x384x384xbf16>) -> tensor<384x384xbf16>
    %d = stablehlo.dot_general %y, %m, contracting_dims = [1] x [0] : (!x, tensor<384x384xbf16>) -> !x
    %z = stablehlo.constant dense<0.0> : tensor<bf16>
    %b = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<bf16>) -> !x
    %u = stablehlo.maximum %d, %b : !x
    %f = stablehlo.convert %y : (!x) -> tensor<320x384xf32>
    %t = stablehlo.reduce(%f init: %o) applies stablehlo.add across dimensions = [0, 1] : (tensor<320x384xf32>, tensor<f32>) -> tensor<f32>
    %p = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %h = stablehlo.dynamic_update_slice %l, %p, %i : (!s, tensor<1xf32>, !i) -> !s
    %one = stablehlo.constant dense<1> : !i
    %j = stablehlo.add %i, %one : !i
    stablehlo.return %vw, %j, %u, %h : !w, !i, !x, !s
  }
  return %r#2, %r#3 : !x, !s
}
