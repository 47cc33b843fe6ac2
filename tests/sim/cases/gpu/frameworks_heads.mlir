// Heads between time and features are turned before a library multiplies them, what lies by the head is not; a
// matrix and a vector by the head are multiplied as they lie.
// TRUTH XLA 0.10.2, compiled ahead of time
// WITH N=512 M=16 K=512 A=16 B=64 C=512 D=2 E=2 F=3
// EXPECT H100-SXM: kernels 3
// WITH N=16 M=512 K=512 A=16 B=64 C=512 D=1 E=2 F=3
// EXPECT H100-SXM: kernels 2
// WITH N=16 M=512 K=16 A=64 B=512 C=512 D=1 E=1 F=2
// EXPECT H100-SXM: kernels 1
// WITH N=1 M=16 K=512 A=16 B=64 C=1 D=2 E=2 F=3
// EXPECT H100-SXM: kernels 1
func.func @main(%q: tensor<8x$Nx$Mx64xbf16>, %k: tensor<8x$Kx$Ax$Bxbf16>) -> tensor<8x16x$Cx512xbf16> {
  %s = stablehlo.dot_general %q, %k, batching_dims = [0, $D] x [0, $E], contracting_dims = [3] x [$F] : (tensor<8x$Nx$Mx64xbf16>, tensor<8x$Kx$Ax$Bxbf16>) -> tensor<8x16x$Cx512xbf16>
  return %s : tensor<8x16x$Cx512xbf16>
}
