module @jit_psum_bf16 attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=4]> {stablehlo.mesh = {axes = [{name = "a", size = 2 : i64}, {name = "b", size = 4 : i64}]}}
  func.func public @main(%arg0: tensor<8x16xf32>) -> (tensor<1x16xf32> {jax.result_info = "result[0]"}, tensor<2x16xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.sine %arg0 : tensor<8x16xf32>
    %1:2 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"a", "b"}, {}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"a"}, {"b"}]>] manual_axes={"a", "b"} (%arg1: tensor<1x16xf32>) {
      %2 = stablehlo.convert %arg1 : (tensor<1x16xf32>) -> tensor<1x16xbf16>
      %3 = "stablehlo.all_reduce"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<bf16>, %arg3: tensor<bf16>):
        %7 = stablehlo.add %arg2, %arg3 : tensor<bf16>
        stablehlo.return %7 : tensor<bf16>
      }) : (tensor<1x16xbf16>) -> tensor<1x16xbf16>
      %4 = "stablehlo.reduce_scatter"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, scatter_dimension = 1 : i64, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<bf16>, %arg3: tensor<bf16>):
        %7 = stablehlo.add %arg2, %arg3 : tensor<bf16>
        stablehlo.return %7 : tensor<bf16>
      }) : (tensor<1x16xbf16>) -> tensor<1x4xbf16>
      %5 = stablehlo.convert %3 : (tensor<1x16xbf16>) -> tensor<1x16xf32>
      %6 = stablehlo.convert %4 : (tensor<1x4xbf16>) -> tensor<1x4xf32>
      sdy.return %5, %6 : tensor<1x16xf32>, tensor<1x4xf32>
    } : (tensor<8x16xf32>) -> (tensor<1x16xf32>, tensor<2x16xf32>)
    return %1#0, %1#1 : tensor<1x16xf32>, tensor<2x16xf32>
  }
}
