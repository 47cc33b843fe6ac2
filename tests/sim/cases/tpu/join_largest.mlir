// The largest of a product's row and where it is come out of the product's kernel.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: kernels 1, temp <1000000
func.func public @main(%x: tensor<4096x128xbf16>, %w: tensor<128x512xbf16>) -> tensor<4096xi32> {
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4096x128xbf16>, tensor<128x512xbf16>) -> tensor<4096x512xf32>
  %i = stablehlo.iota dim = 1 : tensor<4096x512xi32>
  %a = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %b = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = "stablehlo.reduce"(%p, %i, %a, %b) <{dimensions = array<i64: 1>}> ({
  ^bb0(%q: tensor<f32>, %j: tensor<i32>, %s: tensor<f32>, %k: tensor<i32>):
    %c = stablehlo.compare GT, %q, %s : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %d = stablehlo.select %c, %q, %s : tensor<i1>, tensor<f32>
    %e = stablehlo.select %c, %j, %k : tensor<i1>, tensor<i32>
    stablehlo.return %d, %e : tensor<f32>, tensor<i32>
  }) : (tensor<4096x512xf32>, tensor<4096x512xi32>, tensor<f32>, tensor<i32>) -> (tensor<4096xf32>, tensor<4096xi32>)
  return %r#1 : tensor<4096xi32>
}
