// A mask made of integers that several sums ask for is a quarter of their size: it is stored.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: peak 5144576 ±5%
// EXPECT tpu-v5e: peak 5156864 ±5%
func.func public @main(%d: tensor<1000x1000xi32>, %a: tensor<1000xf32>, %b: tensor<1000xf32>, %c: tensor<1000xf32>) -> tensor<1000xf32> {
  %n = stablehlo.constant dense<-1.0e9> : tensor<1000x1000xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.constant dense<0> : tensor<1000x1000xi32>
  %m = stablehlo.compare GT, %d, %0, SIGNED : (tensor<1000x1000xi32>, tensor<1000x1000xi32>) -> tensor<1000x1000xi1>
  %ar = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<1000xf32>) -> tensor<1000x1000xf32>
  %bl = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<1000xf32>) -> tensor<1000x1000xf32>
  %cl = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<1000xf32>) -> tensor<1000x1000xf32>
  %s = stablehlo.add %ar, %bl : tensor<1000x1000xf32>
  %sm = stablehlo.select %m, %s, %n : tensor<1000x1000xi1>, tensor<1000x1000xf32>
  %x = stablehlo.reduce(%sm init: %i) applies stablehlo.maximum across dimensions = [1] : (tensor<1000x1000xf32>, tensor<f32>) -> tensor<1000xf32>
  %p = stablehlo.multiply %ar, %bl : tensor<1000x1000xf32>
  %xr = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<1000xf32>) -> tensor<1000x1000xf32>
  %px = stablehlo.subtract %p, %xr : tensor<1000x1000xf32>
  %pm = stablehlo.select %m, %px, %n : tensor<1000x1000xi1>, tensor<1000x1000xf32>
  %pe = stablehlo.exponential %pm : tensor<1000x1000xf32>
  %y = stablehlo.reduce(%pe init: %z) applies stablehlo.add across dimensions = [1] : (tensor<1000x1000xf32>, tensor<f32>) -> tensor<1000xf32>
  %q = stablehlo.multiply %ar, %cl : tensor<1000x1000xf32>
  %yr = stablehlo.broadcast_in_dim %y, dims = [0] : (tensor<1000xf32>) -> tensor<1000x1000xf32>
  %qy = stablehlo.subtract %q, %yr : tensor<1000x1000xf32>
  %qm = stablehlo.select %m, %qy, %n : tensor<1000x1000xi1>, tensor<1000x1000xf32>
  %qe = stablehlo.exponential %qm : tensor<1000x1000xf32>
  %r = stablehlo.reduce(%qe init: %z) applies stablehlo.add across dimensions = [1] : (tensor<1000x1000xf32>, tensor<f32>) -> tensor<1000xf32>
  return %r : tensor<1000xf32>
}
