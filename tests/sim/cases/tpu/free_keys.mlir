// A stable sort of several arrays numbers their elements.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v2: cycles 666 ±10%, peak 1381376 ±3%
// EXPECT tpu-v5p: cycles 2268 ±10%, peak 1378336 ±3%
// EXPECT tpu-v6e: cycles 28 ±10%, peak 1574944 ±3%
func.func public @main(%x0: tensor<192x208xf32>, %x1: tensor<192x208xf32>, %x2: tensor<192x208xi32>) -> (tensor<192x208xf32>, tensor<192x208xf32>, tensor<192x208xi32>) {
  %0:3 = "stablehlo.sort"(%x0, %x1, %x2) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%x3: tensor<f32>, %x4: tensor<f32>, %x5: tensor<f32>, %x6: tensor<f32>, %x7: tensor<i32>, %x8: tensor<i32>):
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.compare EQ, %x3, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.select %1, %cst_0, %x3 : tensor<i1>, tensor<f32>
    %3 = stablehlo.compare NE, %x3, %x3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %4 = stablehlo.select %3, %cst_1, %2 : tensor<i1>, tensor<f32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.compare EQ, %x4, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.select %5, %cst_3, %x4 : tensor<i1>, tensor<f32>
    %7 = stablehlo.compare NE, %x4, %x4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %8 = stablehlo.select %7, %cst_4, %6 : tensor<i1>, tensor<f32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %9 = stablehlo.compare EQ, %x5, %cst_5, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.select %9, %cst_6, %x5 : tensor<i1>, tensor<f32>
    %11 = stablehlo.compare NE, %x5, %x5, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_7 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %12 = stablehlo.select %11, %cst_7, %10 : tensor<i1>, tensor<f32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %13 = stablehlo.compare EQ, %x6, %cst_8, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %14 = stablehlo.select %13, %cst_9, %x6 : tensor<i1>, tensor<f32>
    %15 = stablehlo.compare NE, %x6, %x6, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %cst_10 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %16 = stablehlo.select %15, %cst_10, %14 : tensor<i1>, tensor<f32>
    %17 = stablehlo.compare LT, %12, %16, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %18 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %19 = stablehlo.compare EQ, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %20 = stablehlo.and %19, %17 : tensor<i1>
    %21 = stablehlo.or %18, %20 : tensor<i1>
    stablehlo.return %21 : tensor<i1>
  }) : (tensor<192x208xf32>, tensor<192x208xf32>, tensor<192x208xi32>) -> (tensor<192x208xf32>, tensor<192x208xf32>, tensor<192x208xi32>)
  return %0#0, %0#1, %0#2 : tensor<192x208xf32>, tensor<192x208xf32>, tensor<192x208xi32>
}
