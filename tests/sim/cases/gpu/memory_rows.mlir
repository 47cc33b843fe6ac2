// Rows that leave much of a block empty take a kernel more on an H100, where exponentials are stored first.
// TRUTH XLA 0.10.2, compiled ahead of time
// WITH N=640
// EXPECT H100-SXM: kernels 8
// EXPECT A100-80GB: kernels 7
// WITH N=768
// EXPECT H100-SXM: kernels 7
// EXPECT A100-80GB: kernels 7
func.func @main(%q: tensor<16x$Nx64xbf16>, %k: tensor<16x$Nx64xbf16>, %v: tensor<16x$Nx64xbf16>, %g: tensor<16x$Nx64xbf16>) -> (tensor<16x$Nx64xbf16>, tensor<16x$Nx64xbf16>) {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<16x$Nx64xbf16>, tensor<16x$Nx64xbf16>) -> tensor<16x$Nx$Nxbf16>
  %x = stablehlo.convert %s : (tensor<16x$Nx$Nxbf16>) -> tensor<16x$Nx$Nxf32>
  %m = stablehlo.reduce(%x init: %i) applies stablehlo.maximum across dimensions = [2] : (tensor<16x$Nx$Nxf32>, tensor<f32>) -> tensor<16x$Nxf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<16x$Nxf32>) -> tensor<16x$Nx$Nxf32>
  %d = stablehlo.subtract %x, %mb : tensor<16x$Nx$Nxf32>
  %e = stablehlo.exponential %d : tensor<16x$Nx$Nxf32>
  %u = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [2] : (tensor<16x$Nx$Nxf32>, tensor<f32>) -> tensor<16x$Nxf32>
  %ub = stablehlo.broadcast_in_dim %u, dims = [0, 1] : (tensor<16x$Nxf32>) -> tensor<16x$Nx$Nxf32>
  %p = stablehlo.divide %e, %ub : tensor<16x$Nx$Nxf32>
  %h = stablehlo.convert %p : (tensor<16x$Nx$Nxf32>) -> tensor<16x$Nx$Nxbf16>
  %y = stablehlo.dot_general %h, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<16x$Nx$Nxbf16>, tensor<16x$Nx64xbf16>) -> tensor<16x$Nx64xbf16>
  %dh = stablehlo.dot_general %g, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<16x$Nx64xbf16>, tensor<16x$Nx64xbf16>) -> tensor<16x$Nx$Nxbf16>
  %dp = stablehlo.convert %dh : (tensor<16x$Nx$Nxbf16>) -> tensor<16x$Nx$Nxf32>
  %w = stablehlo.multiply %p, %dp : tensor<16x$Nx$Nxf32>
  %t = stablehlo.reduce(%w init: %z) applies stablehlo.add across dimensions = [2] : (tensor<16x$Nx$Nxf32>, tensor<f32>) -> tensor<16x$Nxf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<16x$Nxf32>) -> tensor<16x$Nx$Nxf32>
  %c = stablehlo.subtract %dp, %tb : tensor<16x$Nx$Nxf32>
  %ds = stablehlo.multiply %c, %p : tensor<16x$Nx$Nxf32>
  %dsh = stablehlo.convert %ds : (tensor<16x$Nx$Nxf32>) -> tensor<16x$Nx$Nxbf16>
  %dq = stablehlo.dot_general %dsh, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<16x$Nx$Nxbf16>, tensor<16x$Nx64xbf16>) -> tensor<16x$Nx64xbf16>
  return %y, %dq : tensor<16x$Nx64xbf16>, tensor<16x$Nx64xbf16>
}
