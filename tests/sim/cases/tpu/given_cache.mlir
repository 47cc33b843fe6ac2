// A decoder's caches as a scan takes them and gives them back, one slice a round, donated: what is given back is made beside what is still read, and copied at the end.
// TRUTH libtpu 0.0.52, compiled ahead of time
// EXPECT tpu-v5e: peak 536908800 ±1%, kernels(copy) >0
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}}
  func.func public @main(%arg0: tensor<8x64x2048x128xbf16> {sdy.sharding = #sdy.sharding<@empty_mesh, [{}, {}, {}, {}]>, tf.aliasing_output = 1 : i32}, %arg1: tensor<64x128xbf16> {sdy.sharding = #sdy.sharding<@empty_mesh, [{}, {}]>}, %arg2: tensor<i32> {sdy.sharding = #sdy.sharding<@empty_mesh, []>}) -> (tensor<64x128xbf16> {jax.result_info = "result[0]"}, tensor<8x64x2048x128xbf16> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<8x64x2048x128xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:5 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg2, %iterArg_1 = %c, %iterArg_2 = %arg1, %iterArg_3 = %0) : tensor<8x64x2048x128xbf16>, tensor<i32>, tensor<i32>, tensor<64x128xbf16>, tensor<8x64x2048x128xbf16>
    cond {
      %c_4 = stablehlo.constant dense<8> : tensor<i32>
      %2 = stablehlo.compare LT, %iterArg_1, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_1) : (tensor<8x64x2048x128xbf16>, tensor<i32>) -> tensor<64x2048x128xbf16>
      %3:2 = func.call @closed_call(%iterArg_0, %iterArg_2, %2) : (tensor<i32>, tensor<64x128xbf16>, tensor<64x2048x128xbf16>) -> (tensor<64x128xbf16>, tensor<64x2048x128xbf16>)
      %4 = func.call @dynamic_update_index_in_dim(%iterArg_3, %3#1, %iterArg_1) : (tensor<8x64x2048x128xbf16>, tensor<64x2048x128xbf16>, tensor<i32>) -> tensor<8x64x2048x128xbf16>
      %c_4 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.add %iterArg_1, %c_4 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_0, %5, %3#0, %4 : tensor<8x64x2048x128xbf16>, tensor<i32>, tensor<i32>, tensor<64x128xbf16>, tensor<8x64x2048x128xbf16>
    }
    return %1#3, %1#4 : tensor<64x128xbf16>, tensor<8x64x2048x128xbf16>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<8x64x2048x128xbf16>, %arg1: tensor<i32>) -> tensor<64x2048x128xbf16> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 64, 2048, 128] : (tensor<8x64x2048x128xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x2048x128xbf16>
    %1 = stablehlo.reshape %0 : (tensor<1x64x2048x128xbf16>) -> tensor<64x2048x128xbf16>
    return %1 : tensor<64x2048x128xbf16>
  }
  func.func private @closed_call(%arg0: tensor<i32>, %arg1: tensor<64x128xbf16>, %arg2: tensor<64x2048x128xbf16>) -> (tensor<64x128xbf16>, tensor<64x2048x128xbf16>) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] : (tensor<64x128xbf16>) -> tensor<64x1x128xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare LT, %arg0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<2048> : tensor<i32>
    %2 = stablehlo.add %arg0, %c_0 : tensor<i32>
    %3 = stablehlo.select %1, %2, %arg0 : tensor<i1>, tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.dynamic_update_slice %arg2, %0, %c_1, %3, %c_2 : (tensor<64x2048x128xbf16>, tensor<64x1x128xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<64x2048x128xbf16>
    %5 = stablehlo.convert %4 : (tensor<64x2048x128xbf16>) -> tensor<64x2048x128xf32>
    %6 = stablehlo.tanh %5 : tensor<64x2048x128xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<64x2048x128xf32>, tensor<f32>) -> tensor<64x128xf32>
    %8 = stablehlo.convert %7 : (tensor<64x128xf32>) -> tensor<64x128xbf16>
    %9 = stablehlo.add %arg1, %8 : tensor<64x128xbf16>
    return %9, %4 : tensor<64x128xbf16>, tensor<64x2048x128xbf16>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<8x64x2048x128xbf16>, %arg1: tensor<64x2048x128xbf16>, %arg2: tensor<i32>) -> tensor<8x64x2048x128xbf16> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<64x2048x128xbf16>) -> tensor<1x64x2048x128xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<8x64x2048x128xbf16>, tensor<1x64x2048x128xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x64x2048x128xbf16>
    return %1 : tensor<8x64x2048x128xbf16>
  }
}
