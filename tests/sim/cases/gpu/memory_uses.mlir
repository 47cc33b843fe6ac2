// What a kernel looks at element by element it reads once, however many of its operations do: nothing is stored
// between them.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT T4,library: peak 339738624 ±0.001%
// EXPECT H100-SXM,library: peak 369098768 ±0.001%
func.func @main(%a: tensor<4096x4096xf32>, %b: tensor<4096x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %y = stablehlo.add %a, %b : tensor<4096x4096xf32>
  %e = stablehlo.multiply %y, %a : tensor<4096x4096xf32>
  %m = stablehlo.multiply %e, %e : tensor<4096x4096xf32>
  %n = stablehlo.multiply %m, %e : tensor<4096x4096xf32>
  %o = stablehlo.multiply %n, %e : tensor<4096x4096xf32>
  %p = stablehlo.multiply %o, %e : tensor<4096x4096xf32>
  %d = stablehlo.dot_general %p, %w, contracting_dims = [1] x [0] : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %q = stablehlo.multiply %d, %e : tensor<4096x4096xf32>
  %r = stablehlo.multiply %q, %e : tensor<4096x4096xf32>
  %s = stablehlo.multiply %r, %e : tensor<4096x4096xf32>
  %t = stablehlo.multiply %s, %e : tensor<4096x4096xf32>
  return %t : tensor<4096x4096xf32>
}
