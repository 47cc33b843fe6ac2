// A small product takes in the conversion that widens its result, of a large one the readers do.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=192
// EXPECT tpu-v6e: arrays(147456 bytes) 0
// EXPECT tpu-v5e: arrays(147456 bytes) >0
// WITH N=1536
// EXPECT tpu-v6e: arrays(1179648 bytes) >0
// EXPECT tpu-v5e: arrays(1179648 bytes) >0
func.func public @main(%x: tensor<$Nx256xbf16>, %y: tensor<256x384xbf16>, %v: tensor<384xbf16>) -> (tensor<384xf32>, tensor<384xf32>, tensor<$Nx384xf32>) {
  %o = stablehlo.constant dense<0.0> : tensor<f32>
  %b = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<384xbf16>) -> tensor<$Nx384xbf16>
  %p = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<$Nx256xbf16>, tensor<256x384xbf16>) -> tensor<$Nx384xbf16>
  %a = stablehlo.add %p, %b : tensor<$Nx384xbf16>
  %c = stablehlo.convert %a : (tensor<$Nx384xbf16>) -> tensor<$Nx384xf32>
  %s = stablehlo.reduce(%c init: %o) applies stablehlo.add across dimensions = [0] : (tensor<$Nx384xf32>, tensor<f32>) -> tensor<384xf32>
  %m = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<384xf32>) -> tensor<$Nx384xf32>
  %d = stablehlo.subtract %c, %m : tensor<$Nx384xf32>
  %q = stablehlo.multiply %d, %d : tensor<$Nx384xf32>
  %t = stablehlo.reduce(%q init: %o) applies stablehlo.add across dimensions = [0] : (tensor<$Nx384xf32>, tensor<f32>) -> tensor<384xf32>
  %e = stablehlo.sine %d : tensor<$Nx384xf32>
  return %s, %t, %e : tensor<384xf32>, tensor<384xf32>, tensor<$Nx384xf32>
}
