// A row that a loop repeats becomes a vector in every round.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: kernels 2
func.func public @main(%x: tensor<64x256xf32>, %b: tensor<1x256xf32>) -> tensor<64x256xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<16> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %c = %b, %y = %x) : tensor<i32>, tensor<1x256xf32>, tensor<64x256xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %s = stablehlo.sine %y : tensor<64x256xf32>
    %w = stablehlo.broadcast_in_dim %c, dims = [0, 1] : (tensor<1x256xf32>) -> tensor<64x256xf32>
    %z = stablehlo.add %s, %w : tensor<64x256xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %c, %z : tensor<i32>, tensor<1x256xf32>, tensor<64x256xf32>
  }
  return %r#2 : tensor<64x256xf32>
}
