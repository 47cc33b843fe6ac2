// A result that is an argument with one more dimension of one element is a copy of it as it lies.
// TRUTH libtpu 0.0.52, compiled ahead of time
// EXPECT tpu-v5e: cycles 132414 ±3%, kernels 1
func.func @main(%a: tensor<2x256x255x7x8xi16>) -> tensor<1x2x256x255x7x8xi16> {
  %r = stablehlo.reshape %a : (tensor<2x256x255x7x8xi16>) -> tensor<1x2x256x255x7x8xi16>
  return %r : tensor<1x2x256x255x7x8xi16>
}
