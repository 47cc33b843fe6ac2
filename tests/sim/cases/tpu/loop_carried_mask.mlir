// An array that a loop hands on and that repeats a smaller one: the loop carries the smaller one, and nothing stores the other.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: temp 0
// EXPECT tpu-v4: temp 0
func.func @main(%m: tensor<1024x1024xi1>, %x: tensor<8x1024x1024xf32>) -> tensor<8x1024x1024xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %all = stablehlo.broadcast_in_dim %m, dims = [1, 2] : (tensor<1024x1024xi1>) -> tensor<8x1024x1024xi1>
  %r:3 = stablehlo.while(%i = %zero, %k = %all, %c = %x) : tensor<i32>, tensor<8x1024x1024xi1>, tensor<8x1024x1024xf32>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %s = stablehlo.sine %c : tensor<8x1024x1024xf32>
    %t = stablehlo.select %k, %s, %c : tensor<8x1024x1024xi1>, tensor<8x1024x1024xf32>
    stablehlo.return %j, %k, %t : tensor<i32>, tensor<8x1024x1024xi1>, tensor<8x1024x1024xf32>
  }
  return %r#2 : tensor<8x1024x1024xf32>
}
