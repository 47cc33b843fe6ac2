// But it lies in a result's memory until that is made,
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM,library: temp 100663296 ±0.001%
func.func @main(%x: tensor<4096x4096xf32>, %w: tensor<4096x4096xf32>, %v: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %e = stablehlo.tanh %y : tensor<4096x4096xf32>
  %z = stablehlo.dot_general %e, %v, contracting_dims = [1] x [0] : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %z : tensor<4096x4096xf32>
}
