// A quotient by a constant is a product.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 4322 ±2.5%
// EXPECT tpu-v3: cycles 4404 ±2.5%
// EXPECT tpu-v4: cycles 2759 ±2.5%
// EXPECT tpu-v5e: cycles 5350 ±2.5%
!t = tensor<1536x128xbf16>
func.func public @main(%x: !t) -> !t {
  %3 = stablehlo.constant dense<3.0> : !t
  %z = stablehlo.constant dense<0.0> : !t
  %6 = stablehlo.constant dense<6.0> : !t
  %a = stablehlo.add %x, %3 : !t
  %b = stablehlo.maximum %z, %a : !t
  %c = stablehlo.minimum %6, %b : !t
  %d = stablehlo.multiply %x, %c : !t
  %e = stablehlo.divide %d, %6 : !t
  return %e : !t
}
