// A stack that a loop writes from its end is filled with its constant before.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: kernels(broadcast_in_dim) 0
func.func public @main(%x: tensor<64x128xf32>) -> tensor<16x64x128xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %last = stablehlo.constant dense<15> : tensor<i32>
  %n = stablehlo.constant dense<16> : tensor<i32>
  %init = stablehlo.constant dense<0.0> : tensor<16x64x128xf32>
  %r:3 = stablehlo.while(%i = %zero, %s = %init, %y = %x) : tensor<i32>, tensor<16x64x128xf32>, tensor<64x128xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %back = stablehlo.subtract %last, %i : tensor<i32>
    %z = stablehlo.sine %y : tensor<64x128xf32>
    %row = stablehlo.reshape %z : (tensor<64x128xf32>) -> tensor<1x64x128xf32>
    %t = stablehlo.dynamic_update_slice %s, %row, %i, %zero, %zero : (tensor<16x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<16x64x128xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t, %z : tensor<i32>, tensor<16x64x128xf32>, tensor<64x128xf32>
  }
  return %r#1 : tensor<16x64x128xf32>
}
