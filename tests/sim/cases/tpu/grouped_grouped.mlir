// Four heads to a key, two keys' heads: the scores' gradient is stored on some generations, and the quotients by
// the product that makes the exponentials again.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v4: peak 24478208 ±1%
// EXPECT tpu-v5e: peak 16122368 ±2%
// EXPECT tpu-v6e: peak 20545568 ±1%
// EXPECT tpu7x: peak 24477728 ±1%
func.func @main(%arg0: tensor<4x256x2x4x64xbf16>, %arg1: tensor<4x256x2x64xbf16>, %arg2: tensor<4x256x2x64xbf16>, %arg3: tensor<4x256x2x4x64xbf16>) -> (tensor<4x256x2x4x64xbf16>, tensor<4x256x2x4x64xbf16>, tensor<4x256x2x64xbf16>, tensor<4x256x2x64xbf16>) {
  %0 = stablehlo.dot_general %arg1, %arg0, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4] : (tensor<4x256x2x64xbf16>, tensor<4x256x2x4x64xbf16>) -> tensor<4x2x256x256x4xbf16>
  %1 = stablehlo.transpose %0, dims = [0, 1, 4, 3, 2] : (tensor<4x2x256x256x4xbf16>) -> tensor<4x2x4x256x256xbf16>
  %2 = stablehlo.convert %1 : (tensor<4x2x4x256x256xbf16>) -> tensor<4x2x4x256x256xf32>
  %cst = stablehlo.constant dense<1.250000e-01> : tensor<f32>
  %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x2x4x256x256xf32>
  %4 = stablehlo.multiply %2, %3 : tensor<4x2x4x256x256xf32>
  %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %5 = stablehlo.reduce(%4 init: %cst_0) applies stablehlo.maximum across dimensions = [4] : (tensor<4x2x4x256x256xf32>, tensor<f32>) -> tensor<4x2x4x256xf32>
  %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %6 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x2x4x256xf32>
  %7 = stablehlo.maximum %6, %5 : tensor<4x2x4x256xf32>
  %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2, 3] : (tensor<4x2x4x256xf32>) -> tensor<4x2x4x256x1xf32>
  %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3, 4] : (tensor<4x2x4x256x1xf32>) -> tensor<4x2x4x256x256xf32>
  %10 = stablehlo.subtract %4, %9 : tensor<4x2x4x256x256xf32>
  %11 = stablehlo.exponential %10 : tensor<4x2x4x256x256xf32>
  %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %12 = stablehlo.reduce(%11 init: %cst_2) applies stablehlo.add across dimensions = [4] : (tensor<4x2x4x256x256xf32>, tensor<f32>) -> tensor<4x2x4x256xf32>
  %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2, 3] : (tensor<4x2x4x256xf32>) -> tensor<4x2x4x256x1xf32>
  %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2, 3, 4] : (tensor<4x2x4x256x1xf32>) -> tensor<4x2x4x256x256xf32>
  %15 = stablehlo.divide %11, %14 : tensor<4x2x4x256x256xf32>
  %16 = stablehlo.multiply %13, %13 : tensor<4x2x4x256x1xf32>
  %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
  %17 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4x2x4x256x1xf32>
  %18 = stablehlo.divide %17, %16 : tensor<4x2x4x256x1xf32>
  %19 = stablehlo.convert %15 : (tensor<4x2x4x256x256xf32>) -> tensor<4x2x4x256x256xbf16>
  %20 = stablehlo.dot_general %arg2, %19, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [4] : (tensor<4x256x2x64xbf16>, tensor<4x2x4x256x256xbf16>) -> tensor<4x2x64x4x256xbf16>
  %21 = stablehlo.transpose %20, dims = [0, 4, 1, 3, 2] : (tensor<4x2x64x4x256xbf16>) -> tensor<4x256x2x4x64xbf16>
  %22 = stablehlo.transpose %arg3, dims = [0, 2, 4, 3, 1] : (tensor<4x256x2x4x64xbf16>) -> tensor<4x2x64x4x256xbf16>
  %23 = stablehlo.dot_general %22, %arg2, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3] : (tensor<4x2x64x4x256xbf16>, tensor<4x256x2x64xbf16>) -> tensor<4x2x4x256x256xbf16>
  %24 = stablehlo.dot_general %22, %19, batching_dims = [0, 1] x [0, 1], contracting_dims = [3, 4] x [2, 3] : (tensor<4x2x64x4x256xbf16>, tensor<4x2x4x256x256xbf16>) -> tensor<4x2x64x256xbf16>
  %25 = stablehlo.transpose %24, dims = [0, 3, 1, 2] : (tensor<4x2x64x256xbf16>) -> tensor<4x256x2x64xbf16>
  %26 = stablehlo.convert %23 : (tensor<4x2x4x256x256xbf16>) -> tensor<4x2x4x256x256xf32>
  %27 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2, 3, 4] : (tensor<4x2x4x256x1xf32>) -> tensor<4x2x4x256x256xf32>
  %28 = stablehlo.multiply %26, %27 : tensor<4x2x4x256x256xf32>
  %29 = stablehlo.multiply %28, %11 : tensor<4x2x4x256x256xf32>
  %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %30 = stablehlo.reduce(%29 init: %cst_4) applies stablehlo.add across dimensions = [4] : (tensor<4x2x4x256x256xf32>, tensor<f32>) -> tensor<4x2x4x256xf32>
  %31 = stablehlo.reshape %30 : (tensor<4x2x4x256xf32>) -> tensor<4x2x4x256x1xf32>
  %32 = stablehlo.negate %31 : tensor<4x2x4x256x1xf32>
  %33 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2, 3, 4] : (tensor<4x2x4x256x1xf32>) -> tensor<4x2x4x256x256xf32>
  %34 = stablehlo.divide %26, %33 : tensor<4x2x4x256x256xf32>
  %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %35 = stablehlo.reduce(%32 init: %cst_5) applies stablehlo.add across dimensions = [4] : (tensor<4x2x4x256x1xf32>, tensor<f32>) -> tensor<4x2x4x256xf32>
  %36 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2, 3] : (tensor<4x2x4x256xf32>) -> tensor<4x2x4x256x256xf32>
  %37 = stablehlo.add %34, %36 : tensor<4x2x4x256x256xf32>
  %38 = stablehlo.multiply %37, %11 : tensor<4x2x4x256x256xf32>
  %cst_6 = stablehlo.constant dense<1.250000e-01> : tensor<f32>
  %39 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x2x4x256x256xf32>
  %40 = stablehlo.multiply %38, %39 : tensor<4x2x4x256x256xf32>
  %41 = stablehlo.convert %40 : (tensor<4x2x4x256x256xf32>) -> tensor<4x2x4x256x256xbf16>
  %42 = stablehlo.transpose %41, dims = [0, 1, 4, 3, 2] : (tensor<4x2x4x256x256xbf16>) -> tensor<4x2x256x256x4xbf16>
  %43 = stablehlo.dot_general %42, %arg1, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1] : (tensor<4x2x256x256x4xbf16>, tensor<4x256x2x64xbf16>) -> tensor<4x2x256x4x64xbf16>
  %44 = stablehlo.transpose %43, dims = [0, 2, 1, 3, 4] : (tensor<4x2x256x4x64xbf16>) -> tensor<4x256x2x4x64xbf16>
  %45 = stablehlo.dot_general %42, %arg0, batching_dims = [0, 1] x [0, 2], contracting_dims = [3, 4] x [1, 3] : (tensor<4x2x256x256x4xbf16>, tensor<4x256x2x4x64xbf16>) -> tensor<4x2x256x64xbf16>
  %46 = stablehlo.transpose %45, dims = [0, 2, 1, 3] : (tensor<4x2x256x64xbf16>) -> tensor<4x256x2x64xbf16>
  return %21, %44, %46, %25 : tensor<4x256x2x4x64xbf16>, tensor<4x256x2x4x64xbf16>, tensor<4x256x2x64xbf16>, tensor<4x256x2x64xbf16>
}
