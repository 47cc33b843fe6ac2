// Two layers and what changes their weights. Where two cores are one device, a product that writes over a weight in
// device memory reads it from there, though it has been on chip before.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5p: peak 6946848 ±2%
func.func public @main(%w: tensor<640x512xf32> {jax.buffer_donor = true}, %v: tensor<512x384xf32> {jax.buffer_donor = true}, %x: tensor<512x640xf32>) -> (tensor<640x512xf32>, tensor<512x384xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<512x384xf32>
  %ones = stablehlo.constant dense<1.0> : tensor<512x512xf32>
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x640xf32>, tensor<640x512xf32>) -> tensor<512x512xf32>
  %a = stablehlo.tanh %1 : tensor<512x512xf32>
  %2 = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x384xf32>) -> tensor<512x384xf32>
  %b = stablehlo.tanh %2 : tensor<512x384xf32>
  %3 = stablehlo.multiply %b, %b : tensor<512x384xf32>
  %4 = stablehlo.subtract %one, %3 : tensor<512x384xf32>
  %d = stablehlo.multiply %b, %4 : tensor<512x384xf32>
  %5 = stablehlo.dot_general %a, %d, contracting_dims = [0] x [0] : (tensor<512x512xf32>, tensor<512x384xf32>) -> tensor<512x384xf32>
  %6 = stablehlo.dot_general %d, %v, contracting_dims = [1] x [1] : (tensor<512x384xf32>, tensor<512x384xf32>) -> tensor<512x512xf32>
  %7 = stablehlo.multiply %a, %a : tensor<512x512xf32>
  %8 = stablehlo.subtract %ones, %7 : tensor<512x512xf32>
  %e = stablehlo.multiply %6, %8 : tensor<512x512xf32>
  %9 = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0] : (tensor<512x640xf32>, tensor<512x512xf32>) -> tensor<640x512xf32>
  %wn = stablehlo.subtract %w, %9 : tensor<640x512xf32>
  %vn = stablehlo.subtract %v, %5 : tensor<512x384xf32>
  return %wn, %vn : tensor<640x512xf32>, tensor<512x384xf32>
}
