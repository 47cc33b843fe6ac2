// A vector that an operand is made of is no stream of windows.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: cycles 4890 ±10%, peak 600064 ±3%
// EXPECT tpu-v5e: cycles 5615 ±10%, peak 796672 ±3%
// EXPECT tpu-v5p: cycles 3712 ±10%, peak 796672 ±3%
func.func public @main(%x0: tensor<520xi32>, %x1: tensor<256x384xbf16>) -> (tensor<520x384xbf16>) {
  %0 = call @_one_hot(%x0) : (tensor<520xi32>) -> tensor<520x256xbf16>
  %1 = stablehlo.dot_general %0, %x1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<520x256xbf16>, tensor<256x384xbf16>) -> tensor<520x384xbf16>
  return %1 : tensor<520x384xbf16>
}
func.func private @_one_hot(%x0: tensor<520xi32>) -> tensor<520x256xbf16> {
  %0 = stablehlo.broadcast_in_dim %x0, dims = [0] : (tensor<520xi32>) -> tensor<520x1xi32>
  %1 = stablehlo.iota dim = 1 : tensor<1x256xi32>
  %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<520x1xi32>) -> tensor<520x256xi32>
  %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x256xi32>) -> tensor<520x256xi32>
  %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<520x256xi32>, tensor<520x256xi32>) -> tensor<520x256xi1>
  %5 = stablehlo.convert %4 : (tensor<520x256xi1>) -> tensor<520x256xbf16>
  return %5 : tensor<520x256xbf16>
}
