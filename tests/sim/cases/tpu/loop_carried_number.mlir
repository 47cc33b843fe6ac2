// An array of one value that a loop hands on is made where it is read.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 1301704 ±1%, peak <68000000
func.func @main(%x: tensor<8x1024x1024xf32>) -> tensor<8x1024x1024xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %low = stablehlo.constant dense<-1.0e9> : tensor<8x1024x1024xf32>
  %r:3 = stablehlo.while(%i = %zero, %k = %low, %c = %x) : tensor<i32>, tensor<8x1024x1024xf32>, tensor<8x1024x1024xf32>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %s = stablehlo.sine %c : tensor<8x1024x1024xf32>
    %t = stablehlo.maximum %k, %s : tensor<8x1024x1024xf32>
    stablehlo.return %j, %k, %t : tensor<i32>, tensor<8x1024x1024xf32>, tensor<8x1024x1024xf32>
  }
  return %r#2 : tensor<8x1024x1024xf32>
}
