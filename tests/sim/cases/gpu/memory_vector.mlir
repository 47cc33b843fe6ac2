// Products of a vector are sums, not cuBLAS's.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM,library: temp <1048576
func.func @main(%x: tensor<1x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<1x4096xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  return %y : tensor<1x4096xf32>
}
