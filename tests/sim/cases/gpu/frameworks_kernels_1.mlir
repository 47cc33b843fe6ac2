// What XLA puts into one kernel, as its programs on an H100 show (tests/sim/gpu): all of a layer norm where Triton
// writes it; a gather and its indices; one stack of a loop, and no more. What it gives cuBLAS besides the operands.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM: kernels 1, temp 0
// EXPECT A100-80GB: kernels 1, temp 0
// EXPECT V100: kernels >1
func.func @main(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %k = stablehlo.constant dense<1024.0> : tensor<4096xf32>
  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4096x1024xf32>, tensor<f32>) -> tensor<4096xf32>
  %m = stablehlo.divide %s, %k : tensor<4096xf32>
  %b = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4096xf32>) -> tensor<4096x1024xf32>
  %d = stablehlo.subtract %x, %b : tensor<4096x1024xf32>
  %q = stablehlo.multiply %d, %d : tensor<4096x1024xf32>
  %t = stablehlo.reduce(%q init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4096x1024xf32>, tensor<f32>) -> tensor<4096xf32>
  %v = stablehlo.divide %t, %k : tensor<4096xf32>
  %r = stablehlo.rsqrt %v : tensor<4096xf32>
  %c = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<4096xf32>) -> tensor<4096x1024xf32>
  %y = stablehlo.multiply %d, %c : tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}
