// Numbers are cut out of a vector by one loop, before they are repeated.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 3394 ±10%, peak 1054720 ±3%
// EXPECT tpu-v5e: cycles 6136 ±10%, peak 1051648 ±3%
func.func public @main(%x0: tensor<256x512xf32>, %x1: tensor<8xf32>) -> (tensor<256x512xf32>) {
  %0 = stablehlo.slice %x1 [0:1] : (tensor<8xf32>) -> tensor<1xf32>
  %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<256x512xf32>
  %3 = stablehlo.multiply %x0, %2 : tensor<256x512xf32>
  %4 = stablehlo.slice %x1 [1:2] : (tensor<8xf32>) -> tensor<1xf32>
  %5 = stablehlo.reshape %4 : (tensor<1xf32>) -> tensor<f32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<256x512xf32>
  %7 = stablehlo.add %3, %6 : tensor<256x512xf32>
  %8 = stablehlo.multiply %7, %x0 : tensor<256x512xf32>
  %9 = stablehlo.slice %x1 [2:3] : (tensor<8xf32>) -> tensor<1xf32>
  %10 = stablehlo.reshape %9 : (tensor<1xf32>) -> tensor<f32>
  %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<256x512xf32>
  %12 = stablehlo.add %8, %11 : tensor<256x512xf32>
  %13 = stablehlo.multiply %12, %x0 : tensor<256x512xf32>
  %14 = stablehlo.slice %x1 [3:4] : (tensor<8xf32>) -> tensor<1xf32>
  %15 = stablehlo.reshape %14 : (tensor<1xf32>) -> tensor<f32>
  %16 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<f32>) -> tensor<256x512xf32>
  %17 = stablehlo.add %13, %16 : tensor<256x512xf32>
  %18 = stablehlo.slice %x1 [4:5] : (tensor<8xf32>) -> tensor<1xf32>
  %19 = stablehlo.reshape %18 : (tensor<1xf32>) -> tensor<f32>
  %20 = stablehlo.broadcast_in_dim %19, dims = [] : (tensor<f32>) -> tensor<256x512xf32>
  %21 = stablehlo.add %17, %20 : tensor<256x512xf32>
  return %21 : tensor<256x512xf32>
}
