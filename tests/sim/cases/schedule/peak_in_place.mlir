// A gate in the epilogue of a product writes over the array that it reads, in device memory, though what it makes
// is fetched on chip later: on v5p. Not on TPU7x, where an operand of products has taller tiles than what only
// meets a result. The figures are libtpu's.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=2048
// EXPECT tpu-v5p: temp 16777216 ±1%
// WITH N=8192
// EXPECT tpu7x: temp 134217728 ±1%
func.func @main(%x: tensor<$Nx1024xbf16>, %w: tensor<1024x4096xbf16>, %z: tensor<$Nx1024xbf16>, %v: tensor<1024x4096xbf16>, %u: tensor<4096x1024xbf16>) -> (tensor<$Nx1024xbf16>, tensor<4096x1024xbf16>) {
  %a = stablehlo.dot %x, %w : (tensor<$Nx1024xbf16>, tensor<1024x4096xbf16>) -> tensor<$Nx4096xbf16>
  %p = stablehlo.dot %z, %v : (tensor<$Nx1024xbf16>, tensor<1024x4096xbf16>) -> tensor<$Nx4096xbf16>
  %b = stablehlo.multiply %p, %a : tensor<$Nx4096xbf16>
  %y = stablehlo.dot %b, %u : (tensor<$Nx4096xbf16>, tensor<4096x1024xbf16>) -> tensor<$Nx1024xbf16>
  %d = stablehlo.dot_general %b, %z, contracting_dims = [0] x [0] : (tensor<$Nx4096xbf16>, tensor<$Nx1024xbf16>) -> tensor<4096x1024xbf16>
  return %y, %d : tensor<$Nx1024xbf16>, tensor<4096x1024xbf16>
}
