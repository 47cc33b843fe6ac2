// A softmax of scores that are made of vectors, for two products: stored where the vector unit is slow beside
// memory.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v4: peak 5300736 ±5%
// EXPECT tpu-v5e: peak 3252736 ±5%
func.func public @main(%d: tensor<1000x1000xi8>, %a: tensor<1000xf32>, %b: tensor<1000xf32>, %h: tensor<1000x96xbf16>, %k: tensor<1000x96xbf16>) -> (tensor<1000x96xbf16>, tensor<1000x96xbf16>) {
  %n = stablehlo.constant dense<-1.0e9> : tensor<1000x1000xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.constant dense<0> : tensor<1000x1000xi8>
  %m = stablehlo.compare GT, %d, %0, SIGNED : (tensor<1000x1000xi8>, tensor<1000x1000xi8>) -> tensor<1000x1000xi1>
  %ar = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<1000xf32>) -> tensor<1000x1000xf32>
  %bl = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<1000xf32>) -> tensor<1000x1000xf32>
  %s = stablehlo.add %ar, %bl : tensor<1000x1000xf32>
  %sm = stablehlo.select %m, %s, %n : tensor<1000x1000xi1>, tensor<1000x1000xf32>
  %x = stablehlo.reduce(%sm init: %i) applies stablehlo.maximum across dimensions = [1] : (tensor<1000x1000xf32>, tensor<f32>) -> tensor<1000xf32>
  %xr = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<1000xf32>) -> tensor<1000x1000xf32>
  %sx = stablehlo.subtract %sm, %xr : tensor<1000x1000xf32>
  %e = stablehlo.exponential %sx : tensor<1000x1000xf32>
  %t = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1] : (tensor<1000x1000xf32>, tensor<f32>) -> tensor<1000xf32>
  %tr = stablehlo.broadcast_in_dim %t, dims = [0] : (tensor<1000xf32>) -> tensor<1000x1000xf32>
  %q = stablehlo.divide %e, %tr : tensor<1000x1000xf32>
  %p = stablehlo.convert %q : (tensor<1000x1000xf32>) -> tensor<1000x1000xbf16>
  %y = stablehlo.dot_general %p, %h, contracting_dims = [1] x [0] : (tensor<1000x1000xbf16>, tensor<1000x96xbf16>) -> tensor<1000x96xbf16>
  %w = stablehlo.dot_general %p, %k, contracting_dims = [0] x [0] : (tensor<1000x1000xbf16>, tensor<1000x96xbf16>) -> tensor<1000x96xbf16>
  return %y, %w : tensor<1000x96xbf16>, tensor<1000x96xbf16>
}
