// What XLA puts into one kernel, as its programs on an H100 show (tests/sim/gpu): all of a layer norm where Triton
// writes it; a gather and its indices; one stack of a loop, and no more. What it gives cuBLAS besides the operands.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM: kernels 1, temp 33554432
// EXPECT V100: kernels 1, temp 4194304
func.func @main(%a: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %y = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<4096x4096xf16>, tensor<4096x4096xf16>) -> tensor<4096x4096xf16>
  return %y : tensor<4096x4096xf16>
}
