// Sums of rows that lie wide meet tables that lie narrow: where the update makes a comparison, the tables are
// turned and the results turned back, at four to sixteen times their bytes.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: peak 53844378 ±0.1%
module {
  func.func public @main(%arg0: tensor<20000x16xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<20000x16xf32> {tf.aliasing_output = 1 : i32}, %arg2: tensor<1024xi32>, %arg3: tensor<1024x16xf32>) -> (tensor<20000x16xf32>, tensor<20000x16xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<20000x16xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1024xi32>
    %2 = stablehlo.compare LT, %arg2, %1, SIGNED : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
    %c_0 = stablehlo.constant dense<20000> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<1024xi32>
    %4 = stablehlo.add %arg2, %3 : tensor<1024xi32>
    %5 = stablehlo.select %2, %4, %arg2 : tensor<1024xi1>, tensor<1024xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<1024xi32>) -> tensor<1024x1xi32>
    %7 = "stablehlo.scatter"(%0, %6, %arg3) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %20 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %20 : tensor<f32>
    }) : (tensor<20000x16xf32>, tensor<1024x1xi32>, tensor<1024x16xf32>) -> tensor<20000x16xf32>
    %8 = stablehlo.multiply %7, %7 : tensor<20000x16xf32>
    %9 = stablehlo.add %arg1, %8 : tensor<20000x16xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<20000x16xf32>
    %11 = stablehlo.compare GT, %9, %10, FLOAT : (tensor<20000x16xf32>, tensor<20000x16xf32>) -> tensor<20000x16xi1>
    %cst_2 = stablehlo.constant dense<1.000000e-07> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<20000x16xf32>
    %13 = stablehlo.add %9, %12 : tensor<20000x16xf32>
    %14 = stablehlo.rsqrt %13 : tensor<20000x16xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = call @_where(%11, %14, %cst_3) : (tensor<20000x16xi1>, tensor<20000x16xf32>, tensor<f32>) -> tensor<20000x16xf32>
    %16 = stablehlo.multiply %15, %7 : tensor<20000x16xf32>
    %cst_4 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<20000x16xf32>
    %18 = stablehlo.multiply %17, %16 : tensor<20000x16xf32>
    %19 = stablehlo.subtract %arg0, %18 : tensor<20000x16xf32>
    return %19, %9 : tensor<20000x16xf32>, tensor<20000x16xf32>
  }
  func.func private @_where(%arg0: tensor<20000x16xi1>, %arg1: tensor<20000x16xf32>, %arg2: tensor<f32>) -> tensor<20000x16xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<20000x16xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<20000x16xi1>, tensor<20000x16xf32>
    return %2 : tensor<20000x16xf32>
  }
}
