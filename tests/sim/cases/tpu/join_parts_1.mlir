// What computes with parts of one array is one kernel, as the halves of a rotary embedding are.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: kernels 1
func.func public @main(%x: tensor<64x256xf32>, %c: tensor<64x128xf32>, %d: tensor<64x128xf32>) -> (tensor<64x128xf32>, tensor<64x128xf32>) {
  %a = stablehlo.slice %x [0:64, 0:128] : (tensor<64x256xf32>) -> tensor<64x128xf32>
  %b = stablehlo.slice %x [0:64, 128:256] : (tensor<64x256xf32>) -> tensor<64x128xf32>
  %0 = stablehlo.multiply %a, %c : tensor<64x128xf32>
  %1 = stablehlo.multiply %b, %d : tensor<64x128xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<64x128xf32>
  %3 = stablehlo.sine %a : tensor<64x128xf32>
  %4 = stablehlo.add %3, %b : tensor<64x128xf32>
  return %2, %4 : tensor<64x128xf32>, tensor<64x128xf32>
}
