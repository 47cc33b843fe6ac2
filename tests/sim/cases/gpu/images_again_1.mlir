// What several kernels need is computed again in each where that hides behind reading, and stored where it takes
// longer than memory.
// TRUTH XLA 0.10.2, compiled ahead of time
// EXPECT H100-SXM: temp 0
func.func @main(%x0: tensor<131072x128xf32>, %m0: tensor<65536x128xf32>, %m1: tensor<65536x128xf32>, %m2: tensor<65536x128xf32>, %m3: tensor<65536x128xf32>, %m4: tensor<65536x128xf32>) -> (tensor<65536x128xf32>, tensor<65536x128xf32>, tensor<65536x128xf32>, tensor<65536x128xf32>, tensor<65536x128xf32>) {
  %x1 = stablehlo.floor %x0 : tensor<131072x128xf32>
  %h0 = stablehlo.slice %x1 [0:65536, 0:128] : (tensor<131072x128xf32>) -> tensor<65536x128xf32>
  %p0 = stablehlo.multiply %h0, %m0 : tensor<65536x128xf32>
  %h1 = stablehlo.slice %x1 [1:65537, 0:128] : (tensor<131072x128xf32>) -> tensor<65536x128xf32>
  %p1 = stablehlo.multiply %h1, %m1 : tensor<65536x128xf32>
  %h2 = stablehlo.slice %x1 [2:65538, 0:128] : (tensor<131072x128xf32>) -> tensor<65536x128xf32>
  %p2 = stablehlo.multiply %h2, %m2 : tensor<65536x128xf32>
  %h3 = stablehlo.slice %x1 [3:65539, 0:128] : (tensor<131072x128xf32>) -> tensor<65536x128xf32>
  %p3 = stablehlo.multiply %h3, %m3 : tensor<65536x128xf32>
  %h4 = stablehlo.slice %x1 [4:65540, 0:128] : (tensor<131072x128xf32>) -> tensor<65536x128xf32>
  %p4 = stablehlo.multiply %h4, %m4 : tensor<65536x128xf32>
  return %p0, %p1, %p2, %p3, %p4 : tensor<65536x128xf32>, tensor<65536x128xf32>, tensor<65536x128xf32>, tensor<65536x128xf32>, tensor<65536x128xf32>
}
