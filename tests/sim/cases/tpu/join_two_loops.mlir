// Stacks that are written from their first slices on are filled where two loops' begin as the same constant.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=1.0
// EXPECT tpu-v2: kernels(broadcast_in_dim) 0
// EXPECT tpu-v5e: kernels(broadcast_in_dim) 0
// EXPECT tpu-v6e: kernels(broadcast_in_dim) 0
// WITH N=0.0
// EXPECT tpu-v2: kernels(broadcast_in_dim) 2
// EXPECT tpu-v5e: kernels(broadcast_in_dim) 2
// EXPECT tpu-v6e: kernels(broadcast_in_dim) 2
func.func public @main(%x: tensor<64x128xf32>) -> (tensor<16x64x128xf32>, tensor<16x64x128xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<16> : tensor<i32>
  %c = stablehlo.constant dense<0.0> : tensor<16x64x128xf32>
  %d = stablehlo.constant dense<$N> : tensor<16x64x128xf32>
  %a:3 = stablehlo.while(%i = %zero, %s = %c, %y = %x) : tensor<i32>, tensor<16x64x128xf32>, tensor<64x128xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %z = stablehlo.sine %y : tensor<64x128xf32>
    %row = stablehlo.reshape %z : (tensor<64x128xf32>) -> tensor<1x64x128xf32>
    %t = stablehlo.dynamic_update_slice %s, %row, %i, %zero, %zero : (tensor<16x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<16x64x128xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t, %z : tensor<i32>, tensor<16x64x128xf32>, tensor<64x128xf32>
  }
  %b:3 = stablehlo.while(%i = %zero, %s = %d, %y = %a#2) : tensor<i32>, tensor<16x64x128xf32>, tensor<64x128xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %z = stablehlo.sine %y : tensor<64x128xf32>
    %row = stablehlo.reshape %z : (tensor<64x128xf32>) -> tensor<1x64x128xf32>
    %t = stablehlo.dynamic_update_slice %s, %row, %i, %zero, %zero : (tensor<16x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<16x64x128xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t, %z : tensor<i32>, tensor<16x64x128xf32>, tensor<64x128xf32>
  }
  return %a#1, %b#1 : tensor<16x64x128xf32>, tensor<16x64x128xf32>
}
