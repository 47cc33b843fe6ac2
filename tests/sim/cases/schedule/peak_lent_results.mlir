// When a program needs two thirds of the memory, what comes first lies where a result will be: the figures are
// libtpu's.
// TRUTH libtpu 0.0.51, compiled ahead of time
// WITH N=600064
// EXPECT tpu-v2: peak 4917821440 ±0.1%
// WITH N=819200
// EXPECT tpu-v2: peak 5035261952 ±0.1%
func.func @main(%x: tensor<$Nx1024xbf16>, %w: tensor<1024x1024xbf16>) -> tensor<$Nx1024xbf16> {
  %a = stablehlo.dot %x, %w : (tensor<$Nx1024xbf16>, tensor<1024x1024xbf16>) -> tensor<$Nx1024xbf16>
  %b = stablehlo.dot %a, %w : (tensor<$Nx1024xbf16>, tensor<1024x1024xbf16>) -> tensor<$Nx1024xbf16>
  %m = stablehlo.multiply %a, %b : tensor<$Nx1024xbf16>
  %c = stablehlo.dot %m, %w : (tensor<$Nx1024xbf16>, tensor<1024x1024xbf16>) -> tensor<$Nx1024xbf16>
  %y = stablehlo.dot %c, %w : (tensor<$Nx1024xbf16>, tensor<1024x1024xbf16>) -> tensor<$Nx1024xbf16>
  return %y : tensor<$Nx1024xbf16>
}
