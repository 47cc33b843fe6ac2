// A stack of f32 that a loop leaves, and only a product reads, is one of bf16.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: temp 33554432 ±10%
func.func @main(%x: tensor<512x512xf32>, %w: tensor<512x8xf32>) -> tensor<64x512x8xf32> {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<64x512x512xf32>
  %0:3 = stablehlo.while(%i = %c0, %v = %x, %s = %z) : tensor<i32>, tensor<512x512xf32>, tensor<64x512x512xf32>
  cond {
    %n = stablehlo.constant dense<64> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.add %i, %one : tensor<i32>
    %3 = stablehlo.sine %v : tensor<512x512xf32>
    %4 = stablehlo.reshape %3 : (tensor<512x512xf32>) -> tensor<1x512x512xf32>
    %5 = stablehlo.dynamic_update_slice %s, %4, %i, %zero, %zero : (tensor<64x512x512xf32>, tensor<1x512x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<64x512x512xf32>
    stablehlo.return %2, %3, %5 : tensor<i32>, tensor<512x512xf32>, tensor<64x512x512xf32>
  }
  %6 = stablehlo.dot_general %0#2, %w, contracting_dims = [2] x [0] : (tensor<64x512x512xf32>, tensor<512x8xf32>) -> tensor<64x512x8xf32>
  return %6 : tensor<64x512x8xf32>
}
