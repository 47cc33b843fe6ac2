// Batch normalisation is sums and arithmetic for XLA, and fuses with what reads it; run one operation at a time it is a kernel of its own.
// TRUTH libtpu 0.0.52, compiled ahead of time: the peak; the rest by construction
// EXPECT tpu-v5e: peak 25693184 ±1%, kernels(batch_norm_inference) 0, arrays(maximum) 1
// EXPECT tpu-v4: peak 25693184 ±1%
// EXPECT A100-80GB: kernels(batch_norm_inference) 0
// EXPECT A100-80GB,eager: kernels(batch_norm_inference) 1, kernels(maximum) 1
func.func @main(%x: tensor<32x28x28x128xf32>, %g: tensor<128xf32>, %b: tensor<128xf32>, %m: tensor<128xf32>, %v: tensor<128xf32>) -> tensor<32x28x28x128xf32> {
  %y = "stablehlo.batch_norm_inference"(%x, %g, %b, %m, %v) <{epsilon = 1.0e-5 : f32, feature_index = 3 : i64}> : (tensor<32x28x28x128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) -> tensor<32x28x28x128xf32>
  %z = stablehlo.constant dense<0.0> : tensor<32x28x28x128xf32>
  %r = stablehlo.maximum %y, %z : tensor<32x28x28x128xf32>
  return %r : tensor<32x28x28x128xf32>
}
