// A narrow hyperbolic tangent that is needed before and after a product is stored, an exponential computed again:
// as XLA 0.10.2 compiles activations and their gradients for an H100. What feeds the product lies in the result's
// memory; cuBLAS has its workspace beside.
// TRUTH XLA 0.10.2, compiled ahead of time
// WITH T=bf16 OP=stablehlo.tanh
// EXPECT H100-SXM: temp 167772160 ±0.001%
// WITH T=bf16 OP=stablehlo.exponential
// EXPECT H100-SXM: temp 100663296 ±0.001%
// WITH T=f32 OP=stablehlo.sine
// EXPECT H100-SXM: temp 301989888 ±0.001%
func.func @main(%x: tensor<8192x4096x$T>, %w: tensor<4096x4096x$T>) -> tensor<8192x4096x$T> {
  %t = $OP %x : tensor<8192x4096x$T>
  %y = stablehlo.multiply %x, %t : tensor<8192x4096x$T>
  %z = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<8192x4096x$T>, tensor<4096x4096x$T>) -> tensor<8192x4096x$T>
  %g = stablehlo.multiply %z, %t : tensor<8192x4096x$T>
  return %g : tensor<8192x4096x$T>
}
