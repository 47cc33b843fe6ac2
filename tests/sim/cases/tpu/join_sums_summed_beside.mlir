// A sum beside the slice that a kernel writes into a stack does not ask for a copy of the stack.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: kernels(copy) 0
func.func public @main(%x: tensor<16x8x128xf32>) -> (tensor<16x8x128xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<16> : tensor<i32>
  %o = stablehlo.constant dense<0.0> : tensor<f32>
  %init = stablehlo.constant dense<0.0> : tensor<16x8x128xf32>
  %sums = stablehlo.constant dense<0.0> : tensor<8xf32>
  %r:4 = stablehlo.while(%i = %zero, %s = %init, %y = %x, %u = %sums) : tensor<i32>, tensor<16x8x128xf32>, tensor<16x8x128xf32>, tensor<8xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %a = stablehlo.dynamic_slice %y, %i, %zero, %zero, sizes = [1, 8, 128] : (tensor<16x8x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x128xf32>
    %z = stablehlo.multiply %a, %a : tensor<1x8x128xf32>
    %t = stablehlo.dynamic_update_slice %s, %z, %i, %zero, %zero : (tensor<16x8x128xf32>, tensor<1x8x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<16x8x128xf32>
    %v = stablehlo.reduce(%z init: %o) applies stablehlo.add across dimensions = [0, 2] : (tensor<1x8x128xf32>, tensor<f32>) -> tensor<8xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t, %y, %v : tensor<i32>, tensor<16x8x128xf32>, tensor<16x8x128xf32>, tensor<8xf32>
  }
  return %r#1, %r#3 : tensor<16x8x128xf32>, tensor<8xf32>
}
