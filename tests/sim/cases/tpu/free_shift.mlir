// A padded array that is cut is one loop.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 4759 ±10%, peak 1277952 ±3%
// EXPECT tpu-v2: cycles 3751 ±10%, peak 1277952 ±3%
func.func public @main(%x: tensor<90x1624xf32>) -> tensor<90x1624xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.pad %x, %z, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<90x1624xf32>, tensor<f32>) -> tensor<91x1624xf32>
  %y = stablehlo.slice %p [0:90, 0:1624] : (tensor<91x1624xf32>) -> tensor<90x1624xf32>
  return %y : tensor<90x1624xf32>
}
