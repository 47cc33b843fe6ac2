// A sum over devices is a result itself, but on TPU7x; in a program it takes the place of this device's part.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 0, peak 2097152 ±0.1%
// EXPECT tpu-v5e: cycles 0, peak 2097152 ±0.1%
// EXPECT tpu7x: peak 3145728 ±0.1%
func.func public @main(%x: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = "stablehlo.all_reduce"(%x) <{ replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<512x512xf32>) -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}
