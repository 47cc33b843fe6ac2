// Products of one array are one product of matrices that are put side by side, unless they are large; as XLA 0.10.2
// compiles x @ a, x @ b ahead of time for an H100. A framework runs what it is told.
// TRUTH XLA 0.10.2, compiled ahead of time
// WITH N=4096
// EXPECT H100-SXM: kernels(dot_general) 1, kernels(concatenate) 1
// EXPECT H100-SXM,eager: kernels(dot_general) 2
// WITH N=32768
// EXPECT H100-SXM: kernels(dot_general) 2, kernels(concatenate) 0
// EXPECT H100-SXM,eager: kernels(dot_general) 2
func.func @main(%x: tensor<$Nx1024xbf16>, %a: tensor<1024x1024xbf16>, %b: tensor<1024x512xbf16>) -> (tensor<$Nx1024xbf16>, tensor<$Nx512xbf16>) {
  %y = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : (tensor<$Nx1024xbf16>, tensor<1024x1024xbf16>) -> tensor<$Nx1024xbf16>
  %z = stablehlo.dot_general %x, %b, contracting_dims = [1] x [0] : (tensor<$Nx1024xbf16>, tensor<1024x512xbf16>) -> tensor<$Nx512xbf16>
  return %y, %z : tensor<$Nx1024xbf16>, tensor<$Nx512xbf16>
}
