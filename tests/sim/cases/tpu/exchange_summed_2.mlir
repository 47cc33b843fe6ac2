// A sum over devices is a result itself, but on TPU7x; in a program it takes the place of this device's part.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: temp 1048576
func.func public @main(%x: tensor<512x512xf32>, %w: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %1 = "stablehlo.all_reduce"(%0) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<512x512xf32>) -> tensor<512x512xf32>
  %2 = stablehlo.add %1, %x : tensor<512x512xf32>
  return %2 : tensor<512x512xf32>
}
