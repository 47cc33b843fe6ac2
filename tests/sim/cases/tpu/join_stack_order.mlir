// A stack's slices lie one after the other, whatever pads least.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: arrays([16,20,256]{2,1,0}) >0
func.func public @main(%x: tensor<20x256xf32>) -> tensor<16x20x256xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<16> : tensor<i32>
  %init = stablehlo.constant dense<0.0> : tensor<16x20x256xf32>
  %r:3 = stablehlo.while(%i = %zero, %s = %init, %y = %x) : tensor<i32>, tensor<16x20x256xf32>, tensor<20x256xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %z = stablehlo.sine %y : tensor<20x256xf32>
    %row = stablehlo.reshape %z : (tensor<20x256xf32>) -> tensor<1x20x256xf32>
    %t = stablehlo.dynamic_update_slice %s, %row, %i, %zero, %zero : (tensor<16x20x256xf32>, tensor<1x20x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<16x20x256xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t, %z : tensor<i32>, tensor<16x20x256xf32>, tensor<20x256xf32>
  }
  %v = stablehlo.sine %r#1 : tensor<16x20x256xf32>
  return %v : tensor<16x20x256xf32>
}
