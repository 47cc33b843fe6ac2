// A language model's logits without their last position, `logits[:, :-1]`, their loss and its gradient: the product stores them narrow and cut, and
// their gradient is rounded before it is padded.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: cycles 6999267 ±6%, peak 637568512 ±1%, arrays([8,1024,8192]) 0
module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8192x1024xf32>, %arg1: tensor<8x1024x1024xbf16>, %arg2: tensor<8x1024xi32>) -> (tensor<f32>, tensor<8192x1024xf32>, tensor<8x1024x1024xbf16>) {
    %0 = stablehlo.convert %arg0 : (tensor<8192x1024xf32>) -> tensor<8192x1024xbf16>
    %1 = stablehlo.dot_general %arg1, %0, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x1024x1024xbf16>, tensor<8192x1024xbf16>) -> tensor<8x1024x8192xbf16>
    %2 = stablehlo.convert %1 : (tensor<8x1024x8192xbf16>) -> tensor<8x1024x8192xf32>
    %3 = stablehlo.slice %2 [0:8, 0:1023, 0:8192] : (tensor<8x1024x8192xf32>) -> tensor<8x1023x8192xf32>
    %4:3 = call @log_softmax(%3) : (tensor<8x1023x8192xf32>) -> (tensor<8x1023x8192xf32>, tensor<8x1023x8192xf32>, tensor<8x1023x1xf32>)
    %5 = stablehlo.slice %arg2 [0:8, 1:1024] : (tensor<8x1024xi32>) -> tensor<8x1023xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<8x1023xi32>) -> tensor<8x1023x1xi32>
    %7:2 = call @take_along_axis(%4#0, %6) : (tensor<8x1023x8192xf32>, tensor<8x1023x1xi32>) -> (tensor<8x1023x1xf32>, tensor<8x1023x1x1xi32>)
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%7#0 init: %cst) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<8x1023x1xf32>, tensor<f32>) -> tensor<f32>
    %cst_0 = stablehlo.constant dense<8.184000e+03> : tensor<f32>
    %9 = stablehlo.divide %8, %cst_0 : tensor<f32>
    %10 = stablehlo.negate %9 : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %11 = stablehlo.negate %cst_1 : tensor<f32>
    %cst_2 = stablehlo.constant dense<8.184000e+03> : tensor<f32>
    %12 = stablehlo.divide %11, %cst_2 : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<8x1023x1xf32>
    %14 = call @take_along_axis_0(%7#1, %13) : (tensor<8x1023x1x1xi32>, tensor<8x1023x1xf32>) -> tensor<8x1023x8192xf32>
    %15 = call @log_softmax_1(%4#1, %4#2, %14) : (tensor<8x1023x8192xf32>, tensor<8x1023x1xf32>, tensor<8x1023x8192xf32>) -> tensor<8x1023x8192xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %16 = stablehlo.pad %15, %cst_3, low = [0, 0, 0], high = [0, 1, 0], interior = [0, 0, 0] : (tensor<8x1023x8192xf32>, tensor<f32>) -> tensor<8x1024x8192xf32>
    %17 = stablehlo.convert %16 : (tensor<8x1024x8192xf32>) -> tensor<8x1024x8192xbf16>
    %18 = stablehlo.dot_general %17, %arg1, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x1024x8192xbf16>, tensor<8x1024x1024xbf16>) -> tensor<8192x1024xbf16>
    %19 = stablehlo.dot_general %17, %0, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x1024x8192xbf16>, tensor<8192x1024xbf16>) -> tensor<8x1024x1024xbf16>
    %20 = stablehlo.convert %18 : (tensor<8192x1024xbf16>) -> tensor<8192x1024xf32>
    return %10, %20, %19 : tensor<f32>, tensor<8192x1024xf32>, tensor<8x1024x1024xbf16>
  }
  func.func private @log_softmax(%arg0: tensor<8x1023x8192xf32>) -> (tensor<8x1023x8192xf32>, tensor<8x1023x8192xf32>, tensor<8x1023x1xf32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<8x1023x8192xf32>, tensor<f32>) -> tensor<8x1023xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8x1023xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<8x1023xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<8x1023xf32>) -> tensor<8x1023x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<8x1023x1xf32>) -> tensor<8x1023x8192xf32>
    %5 = stablehlo.subtract %arg0, %4 : tensor<8x1023x8192xf32>
    %6 = stablehlo.exponential %5 : tensor<8x1023x8192xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<8x1023x8192xf32>, tensor<f32>) -> tensor<8x1023xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<8x1023xf32>) -> tensor<8x1023x1xf32>
    %9 = stablehlo.log %8 : tensor<8x1023x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<8x1023x1xf32>) -> tensor<8x1023x8192xf32>
    %11 = stablehlo.subtract %5, %10 : tensor<8x1023x8192xf32>
    return %11, %6, %8 : tensor<8x1023x8192xf32>, tensor<8x1023x8192xf32>, tensor<8x1023x1xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<8x1023x8192xf32>, %arg1: tensor<8x1023x1xi32>) -> (tensor<8x1023x1xf32>, tensor<8x1023x1x1xi32>) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<8x1023x1xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<8x1023x1xi32>, tensor<8x1023x1xi32>) -> tensor<8x1023x1xi1>
    %c_0 = stablehlo.constant dense<8192> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<8x1023x1xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<8x1023x1xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<8x1023x1xi1>, tensor<8x1023x1xi32>
    %5 = stablehlo.reshape %4 : (tensor<8x1023x1xi32>) -> tensor<8x1023x1x1xi32>
    %c_1 = stablehlo.constant dense<8191> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<8x1023x1x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<8x1023x1x1xi32>, tensor<8x1023x1x1xi32>) -> tensor<8x1023x1x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<8x1023x1x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<8x1023x1x1xi32>, tensor<8x1023x1x1xi32>) -> tensor<8x1023x1x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<8x1023x1x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [3] : (tensor<8x1023x1x1xi1>, tensor<i1>) -> tensor<8x1023x1xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<8x1023x8192xf32>, tensor<8x1023x1x1xi32>) -> tensor<8x1023x1xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x1023x1xf32>
    %15 = stablehlo.select %12, %13, %14 : tensor<8x1023x1xi1>, tensor<8x1023x1xf32>
    return %15, %5 : tensor<8x1023x1xf32>, tensor<8x1023x1x1xi32>
  }
  func.func private @take_along_axis_0(%arg0: tensor<8x1023x1x1xi32>, %arg1: tensor<8x1023x1xf32>) -> tensor<8x1023x8192xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x1023x8192xf32>
    %1 = "stablehlo.scatter"(%0, %arg0, %arg1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>, unique_indices = false}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<8x1023x8192xf32>, tensor<8x1023x1x1xi32>, tensor<8x1023x1xf32>) -> tensor<8x1023x8192xf32>
    return %1 : tensor<8x1023x8192xf32>
  }
  func.func private @log_softmax_1(%arg0: tensor<8x1023x8192xf32>, %arg1: tensor<8x1023x1xf32>, %arg2: tensor<8x1023x8192xf32>) -> tensor<8x1023x8192xf32> {
    %0 = stablehlo.negate %arg2 : tensor<8x1023x8192xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<8x1023x8192xf32>, tensor<f32>) -> tensor<8x1023xf32>
    %2 = stablehlo.reshape %1 : (tensor<8x1023xf32>) -> tensor<8x1023x1xf32>
    %3 = stablehlo.divide %2, %arg1 : tensor<8x1023x1xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<8x1023x1xf32>, tensor<f32>) -> tensor<8x1023xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<8x1023xf32>) -> tensor<8x1023x8192xf32>
    %6 = stablehlo.multiply %5, %arg0 : tensor<8x1023x8192xf32>
    %7 = stablehlo.add %arg2, %6 : tensor<8x1023x8192xf32>
    return %7 : tensor<8x1023x8192xf32>
  }
}
