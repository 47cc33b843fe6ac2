// An array whose largest element is looked for as a vector is made one.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 2961 ±10%, peak 538624 ±3%
// EXPECT tpu-v5p: cycles 5340 ±10%, peak 530976 ±3%
// EXPECT tpu-v6e: cycles 5036 ±10%, peak 529952 ±3%
func.func public @main(%x0: tensor<32x2048xf32>) -> (tensor<i32>, tensor<i32>) {
  %0 = stablehlo.reshape %x0 : (tensor<32x2048xf32>) -> tensor<65536xf32>
  %1 = call @argmax(%0) : (tensor<65536xf32>) -> tensor<i32>
  %c = stablehlo.constant dense<2048> : tensor<i32>
  %2:2 = call @divmod(%1, %c) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
  %c_0 = stablehlo.constant dense<32> : tensor<i32>
  %3:2 = call @divmod(%2#0, %c_0) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
  %c_1 = stablehlo.constant dense<0> : tensor<i32>
  %4 = stablehlo.compare GT, %3#0, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %c_2 = stablehlo.constant dense<-1> : tensor<i32>
  %5 = stablehlo.compare LT, %3#0, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %c_3 = stablehlo.constant dense<0> : tensor<i32>
  %6 = call @_where_0(%5, %c_3, %3#1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
  %c_4 = stablehlo.constant dense<31> : tensor<i32>
  %7 = call @_where_0(%4, %c_4, %6) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
  %c_5 = stablehlo.constant dense<0> : tensor<i32>
  %8 = call @_where_0(%5, %c_5, %2#1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
  %c_6 = stablehlo.constant dense<2047> : tensor<i32>
  %9 = call @_where_0(%4, %c_6, %8) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
  return %7, %9 : tensor<i32>, tensor<i32>
}
func.func private @argmax(%x0: tensor<65536xf32>) -> tensor<i32> {
  %0 = stablehlo.iota dim = 0 : tensor<65536xi32>
  %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.reduce(%x0 init: %cst), (%0 init: %c) across dimensions = [0] : (tensor<65536xf32>, tensor<65536xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>) reducer(%x1: tensor<f32>, %x3: tensor<f32>) (%x2: tensor<i32>, %x4: tensor<i32>) {
    %2 = stablehlo.compare GT, %x1, %x3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = stablehlo.compare NE, %x1, %x1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = stablehlo.or %2, %3 : tensor<i1>
    %5 = stablehlo.compare EQ, %x1, %x3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %6 = stablehlo.compare LT, %x2, %x4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.and %5, %6 : tensor<i1>
    %8 = stablehlo.or %4, %7 : tensor<i1>
    %9 = stablehlo.select %4, %x1, %x3 : tensor<i1>, tensor<f32>
    %10 = stablehlo.select %8, %x2, %x4 : tensor<i1>, tensor<i32>
    stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
  }
  return %1#1 : tensor<i32>
}
func.func private @divmod(%x0: tensor<i32>, %x1: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %0 = stablehlo.convert %x1 : tensor<i32>
  %1 = call @floor_divide(%x0, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %2 = call @remainder(%x0, %0) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %1, %2 : tensor<i32>, tensor<i32>
}
func.func private @floor_divide(%x0: tensor<i32>, %x1: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.divide %x0, %x1 : tensor<i32>
  %1 = stablehlo.sign %x0 : tensor<i32>
  %2 = stablehlo.sign %x1 : tensor<i32>
  %3 = stablehlo.compare NE, %1, %2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %4 = stablehlo.remainder %x0, %x1 : tensor<i32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %5 = stablehlo.compare NE, %4, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %6 = stablehlo.and %3, %5 : tensor<i1>
  %c_0 = stablehlo.constant dense<1> : tensor<i32>
  %7 = stablehlo.subtract %0, %c_0 : tensor<i32>
  %8 = call @_where(%6, %7, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
  return %8 : tensor<i32>
}
func.func private @_where(%x0: tensor<i1>, %x1: tensor<i32>, %x2: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.select %x0, %x1, %x2 : tensor<i1>, tensor<i32>
  return %0 : tensor<i32>
}
func.func private @remainder(%x0: tensor<i32>, %x1: tensor<i32>) -> tensor<i32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.compare EQ, %x1, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %c_0 = stablehlo.constant dense<1> : tensor<i32>
  %1 = call @_where(%0, %c_0, %x1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
  %2 = stablehlo.remainder %x0, %1 : tensor<i32>
  %c_1 = stablehlo.constant dense<0> : tensor<i32>
  %3 = stablehlo.compare NE, %2, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %c_2 = stablehlo.constant dense<0> : tensor<i32>
  %4 = stablehlo.compare LT, %2, %c_2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %c_3 = stablehlo.constant dense<0> : tensor<i32>
  %5 = stablehlo.compare LT, %1, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %6 = stablehlo.compare NE, %4, %5, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
  %7 = stablehlo.and %6, %3 : tensor<i1>
  %8 = stablehlo.add %2, %1 : tensor<i32>
  %9 = stablehlo.select %7, %8, %2 : tensor<i1>, tensor<i32>
  return %9 : tensor<i32>
}
func.func private @_where_0(%x0: tensor<i1>, %x1: tensor<i32>, %x2: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.convert %x1 : tensor<i32>
  %1 = stablehlo.select %x0, %0, %x2 : tensor<i1>, tensor<i32>
  return %1 : tensor<i32>
}
