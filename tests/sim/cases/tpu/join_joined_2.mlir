// Two products put a concatenation together themselves, whatever it is rounded to on the way, unless a reshape that
// changes its dimensions comes between.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v5e: kernels(concatenate) 1
func.func public @main(%a: tensor<96x4x64xf32>, %b: tensor<96x4x64xf32>, %w: tensor<512x64xbf16>, %x: tensor<96x64xbf16>) -> (tensor<96x64xbf16>, tensor<512x64xbf16>) {
  %s = stablehlo.sine %a : tensor<96x4x64xf32>
  %t = stablehlo.sine %b : tensor<96x4x64xf32>
  %c = stablehlo.concatenate %s, %t, dim = 2 : (tensor<96x4x64xf32>, tensor<96x4x64xf32>) -> tensor<96x4x128xf32>
  %n = stablehlo.convert %c : (tensor<96x4x128xf32>) -> tensor<96x4x128xbf16>
  %m = stablehlo.reshape %n : (tensor<96x4x128xbf16>) -> tensor<96x512xbf16>
  %d = stablehlo.dot_general %m, %w, contracting_dims = [1] x [0] : (tensor<96x512xbf16>, tensor<512x64xbf16>) -> tensor<96x64xbf16>
  %e = stablehlo.dot_general %m, %x, contracting_dims = [0] x [0] : (tensor<96x512xbf16>, tensor<96x64xbf16>) -> tensor<512x64xbf16>
  return %d, %e : tensor<96x64xbf16>, tensor<512x64xbf16>
}
