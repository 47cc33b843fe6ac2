// Where the gradient of the first layer's weights is made as its transposition, they are turned before it meets
// them, and after.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v6e: kernels(copy) 2
// EXPECT tpu-v5e: kernels(copy) 0
!square = tensor<256x256xf32>
!active = tensor<64x256xf32>
func.func public @main(%w: !square, %x: !active) -> !square {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (!active, !square) -> !active
  %t = stablehlo.tanh %y : !active
  %d = stablehlo.dot_general %t, %x, contracting_dims = [0] x [0] : (!active, !active) -> !square
  %g = stablehlo.transpose %d, dims = [1, 0] : (!square) -> !square
  %l = stablehlo.constant dense<0.01> : !square
  %u = stablehlo.multiply %g, %l : !square
  %n = stablehlo.subtract %w, %u : !square
  return %n : !square
}
