// What is cut out of an array, or padded, lies as that does, and so does what is made of it: whatever pads least.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: arrays([4,36,176]{2,1,0}) >0, arrays([4,36,176]{2,0,1}) 0
func.func public @main(%x: tensor<4x72x176xf32>) -> (tensor<4x176xf32>, tensor<4x38x176xf32>) {
  %o = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.sine %x : tensor<4x72x176xf32>
  %a = stablehlo.slice %s [0:4, 0:72:2, 0:176] : (tensor<4x72x176xf32>) -> tensor<4x36x176xf32>
  %b = stablehlo.slice %s [0:4, 1:72:2, 0:176] : (tensor<4x72x176xf32>) -> tensor<4x36x176xf32>
  %c = stablehlo.multiply %a, %b : tensor<4x36x176xf32>
  %p = stablehlo.pad %c, %o, low = [0, 1, 0], high = [0, 1, 0], interior = [0, 0, 0] : (tensor<4x36x176xf32>, tensor<f32>) -> tensor<4x38x176xf32>
  %d = stablehlo.sine %p : tensor<4x38x176xf32>
  %r = stablehlo.reduce(%c init: %o) applies stablehlo.add across dimensions = [1] : (tensor<4x36x176xf32>, tensor<f32>) -> tensor<4x176xf32>
  return %r, %d : tensor<4x176xf32>, tensor<4x38x176xf32>
}
