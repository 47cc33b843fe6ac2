// Two updates of weights of one shape: v6e and TPU7x make one loop of them, however large; the others bring the
// second one's arrays on chip meanwhile.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: peak 19660800 ±0.1%
// EXPECT tpu7x: peak 19660800 ±0.1%
// EXPECT tpu-v5e: peak 25559040 ±0.1%
!t = tensor<640x768xf32>
func.func public @main(%p: !t, %g: !t, %m: !t, %q: !t, %h: !t, %n: !t, %l: tensor<f32>) -> (!t, !t, !t, !t) {
  %s = stablehlo.broadcast_in_dim %l, dims = [] : (tensor<f32>) -> !t
  %a = stablehlo.multiply %m, %s : !t
  %b = stablehlo.add %a, %g : !t
  %c = stablehlo.sqrt %b : !t
  %d = stablehlo.subtract %p, %c : !t
  %e = stablehlo.multiply %n, %s : !t
  %f = stablehlo.add %e, %h : !t
  %i = stablehlo.sqrt %f : !t
  %j = stablehlo.subtract %q, %i : !t
  return %d, %b, %j, %f : !t, !t, !t, !t
}
