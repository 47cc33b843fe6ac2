// A view, in a branch within a loop, of what lies outside of the branch is none of the branch's kernels: it was looked up among
// them, and beyond their end. (A step of a sampler, NUTS, cut down by a program to what still does that.)
// TRUTH the program's own construction
// EXPECT tpu-v5e: fits 1
module {
  func.func public @main(%arg0: tensor<f32>, %arg1: tensor<2xf32>, %arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<2xf32>, %arg5: tensor<f32>, %arg6: tensor<f32>, %arg7: tensor<i32>, %arg8: tensor<f32>, %arg9: tensor<f32>, %arg10: tensor<3xf32>, %arg11: tensor<3xf32>, %arg12: tensor<3xf32>, %arg13: tensor<i32>, %arg14: tensor<f32>, %arg15: tensor<3xf32>, %arg16: tensor<100x2xui32>, %arg17: tensor<100x2xi32>) -> (tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xi1>, tensor<100xi1>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xi32>, tensor<100xi32>, tensor<100xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100xi32>, tensor<100xf32>, tensor<100xf32>, tensor<100x3xf32>, tensor<100x3xf32>, tensor<100x3xf32>, tensor<100xi32>, tensor<100xf32>, tensor<100x3xf32>) {
    %c = stablehlo.constant dense<false> : tensor<i1>
    %c_0 = stablehlo.constant dense<0> : tensor<100xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<100x3xf32>
    %c_1 = stablehlo.constant dense<false> : tensor<100xi1>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<100x2xf32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_5 = stablehlo.constant dense<[1.000000e+00, 4.000000e+00]> : tensor<2xf32>
    %0 = sdy.sharding_constraint %arg16 <@empty_mesh, [{?}, {}]> : tensor<100x2xui32>
    %1 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<100xf32>
    %2:58 = stablehlo.while(%iterArg = %0, %iterArg_6 = %arg17, %iterArg_7 = %cst_5, %iterArg_8 = %c_3, %iterArg_9 = %arg0, %iterArg_10 = %arg1, %iterArg_11 = %arg2, %iterArg_12 = %arg3, %iterArg_13 = %arg4, %iterArg_14 = %arg5, %iterArg_15 = %arg6, %iterArg_16 = %arg7, %iterArg_17 = %arg8, %iterArg_18 = %arg9, %iterArg_19 = %arg10, %iterArg_20 = %arg11, %iterArg_21 = %arg12, %iterArg_22 = %arg13, %iterArg_23 = %arg14, %iterArg_24 = %arg15, %iterArg_25 = %1, %iterArg_26 = %cst_2, %iterArg_27 = %1, %iterArg_28 = %1, %iterArg_29 = %cst_2, %iterArg_30 = %1, %iterArg_31 = %cst_2, %iterArg_32 = %c_1, %iterArg_33 = %c_1, %iterArg_34 = %1, %iterArg_35 = %1, %iterArg_36 = %cst_2, %iterArg_37 = %1, %iterArg_38 = %cst_2, %iterArg_39 = %1, %iterArg_40 = %1, %iterArg_41 = %cst_2, %iterArg_42 = %1, %iterArg_43 = %cst_2, %iterArg_44 = %1, %iterArg_45 = %cst_2, %iterArg_46 = %1, %iterArg_47 = %1, %iterArg_48 = %cst_2, %iterArg_49 = %c_0, %iterArg_50 = %c_0, %iterArg_51 = %1, %iterArg_52 = %1, %iterArg_53 = %1, %iterArg_54 = %c_0, %iterArg_55 = %1, %iterArg_56 = %1, %iterArg_57 = %cst, %iterArg_58 = %cst, %iterArg_59 = %cst, %iterArg_60 = %c_0, %iterArg_61 = %1, %iterArg_62 = %cst) : tensor<100x2xui32>, tensor<100x2xi32>, tensor<2xf32>, tensor<i32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xi1>, tensor<100xi1>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xi32>, tensor<100xi32>, tensor<100xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100xi32>, tensor<100xf32>, tensor<100xf32>, tensor<100x3xf32>, tensor<100x3xf32>, tensor<100x3xf32>, tensor<100xi32>, tensor<100xf32>, tensor<100x3xf32>
    cond {
      stablehlo.return %c : tensor<i1>
    } do {
      %3 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_8) : (tensor<100x2xui32>, tensor<i32>) -> tensor<2xui32>
      %4 = func.call @dynamic_index_in_dim_0(%iterArg_6, %iterArg_8) : (tensor<100x2xi32>, tensor<i32>) -> tensor<2xi32>
      %5:54 = func.call @closed_call(%iterArg_7, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %iterArg_16, %iterArg_17, %iterArg_18, %iterArg_19, %iterArg_20, %iterArg_21, %iterArg_22, %iterArg_23, %iterArg_24, %3, %4) : (tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>, tensor<2xui32>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<i1>, tensor<i1>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>)
      %6 = func.call @dynamic_update_index_in_dim(%iterArg_25, %5#16, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %7 = func.call @dynamic_update_index_in_dim_10(%iterArg_26, %5#17, %iterArg_8) : (tensor<100x2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<100x2xf32>
      %8 = func.call @dynamic_update_index_in_dim(%iterArg_27, %5#18, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %9 = func.call @dynamic_update_index_in_dim(%iterArg_28, %5#19, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %10 = func.call @dynamic_update_index_in_dim_10(%iterArg_29, %5#20, %iterArg_8) : (tensor<100x2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<100x2xf32>
      %11 = func.call @dynamic_update_index_in_dim(%iterArg_30, %5#21, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %12 = func.call @dynamic_update_index_in_dim_10(%iterArg_31, %5#22, %iterArg_8) : (tensor<100x2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<100x2xf32>
      %13 = func.call @dynamic_update_index_in_dim_11(%iterArg_32, %5#23, %iterArg_8) : (tensor<100xi1>, tensor<i1>, tensor<i32>) -> tensor<100xi1>
      %14 = func.call @dynamic_update_index_in_dim_11(%iterArg_33, %5#24, %iterArg_8) : (tensor<100xi1>, tensor<i1>, tensor<i32>) -> tensor<100xi1>
      %15 = func.call @dynamic_update_index_in_dim(%iterArg_34, %5#25, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %16 = func.call @dynamic_update_index_in_dim(%iterArg_35, %5#26, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %17 = func.call @dynamic_update_index_in_dim_10(%iterArg_36, %5#27, %iterArg_8) : (tensor<100x2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<100x2xf32>
      %18 = func.call @dynamic_update_index_in_dim(%iterArg_37, %5#28, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %19 = func.call @dynamic_update_index_in_dim_10(%iterArg_38, %5#29, %iterArg_8) : (tensor<100x2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<100x2xf32>
      %20 = func.call @dynamic_update_index_in_dim(%iterArg_39, %5#30, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %21 = func.call @dynamic_update_index_in_dim(%iterArg_40, %5#31, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %22 = func.call @dynamic_update_index_in_dim_10(%iterArg_41, %5#32, %iterArg_8) : (tensor<100x2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<100x2xf32>
      %23 = func.call @dynamic_update_index_in_dim(%iterArg_42, %5#33, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %24 = func.call @dynamic_update_index_in_dim_10(%iterArg_43, %5#34, %iterArg_8) : (tensor<100x2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<100x2xf32>
      %25 = func.call @dynamic_update_index_in_dim(%iterArg_44, %5#35, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %26 = func.call @dynamic_update_index_in_dim_10(%iterArg_45, %5#36, %iterArg_8) : (tensor<100x2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<100x2xf32>
      %27 = func.call @dynamic_update_index_in_dim(%iterArg_46, %5#37, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %28 = func.call @dynamic_update_index_in_dim(%iterArg_47, %5#38, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %29 = func.call @dynamic_update_index_in_dim_10(%iterArg_48, %5#39, %iterArg_8) : (tensor<100x2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<100x2xf32>
      %30 = func.call @dynamic_update_index_in_dim_12(%iterArg_49, %5#40, %iterArg_8) : (tensor<100xi32>, tensor<i32>, tensor<i32>) -> tensor<100xi32>
      %31 = func.call @dynamic_update_index_in_dim_12(%iterArg_50, %5#41, %iterArg_8) : (tensor<100xi32>, tensor<i32>, tensor<i32>) -> tensor<100xi32>
      %32 = func.call @dynamic_update_index_in_dim(%iterArg_51, %5#42, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %33 = func.call @dynamic_update_index_in_dim(%iterArg_52, %5#43, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %34 = func.call @dynamic_update_index_in_dim_13(%iterArg_53, %5#44, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %35 = func.call @dynamic_update_index_in_dim_12(%iterArg_54, %5#45, %iterArg_8) : (tensor<100xi32>, tensor<i32>, tensor<i32>) -> tensor<100xi32>
      %36 = func.call @dynamic_update_index_in_dim(%iterArg_55, %5#46, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %37 = func.call @dynamic_update_index_in_dim_13(%iterArg_56, %5#47, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %38 = func.call @dynamic_update_index_in_dim_14(%iterArg_57, %5#48, %iterArg_8) : (tensor<100x3xf32>, tensor<3xf32>, tensor<i32>) -> tensor<100x3xf32>
      %39 = func.call @dynamic_update_index_in_dim_14(%iterArg_58, %5#49, %iterArg_8) : (tensor<100x3xf32>, tensor<3xf32>, tensor<i32>) -> tensor<100x3xf32>
      %40 = func.call @dynamic_update_index_in_dim_14(%iterArg_59, %5#50, %iterArg_8) : (tensor<100x3xf32>, tensor<3xf32>, tensor<i32>) -> tensor<100x3xf32>
      %41 = func.call @dynamic_update_index_in_dim_12(%iterArg_60, %5#51, %iterArg_8) : (tensor<100xi32>, tensor<i32>, tensor<i32>) -> tensor<100xi32>
      %42 = func.call @dynamic_update_index_in_dim(%iterArg_61, %5#52, %iterArg_8) : (tensor<100xf32>, tensor<f32>, tensor<i32>) -> tensor<100xf32>
      %43 = func.call @dynamic_update_index_in_dim_14(%iterArg_62, %5#53, %iterArg_8) : (tensor<100x3xf32>, tensor<3xf32>, tensor<i32>) -> tensor<100x3xf32>
      stablehlo.return %iterArg, %iterArg_6, %iterArg_7, %c_3, %5#0, %5#1, %5#2, %5#3, %5#4, %5#5, %5#6, %5#7, %5#8, %5#9, %5#10, %5#11, %5#12, %5#13, %5#14, %5#15, %6, %7, %8, %9, %10, %11, %12, %c_1, %c_1, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %cst : tensor<100x2xui32>, tensor<100x2xi32>, tensor<2xf32>, tensor<i32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xi1>, tensor<100xi1>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xi32>, tensor<100xi32>, tensor<100xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100xi32>, tensor<100xf32>, tensor<100xf32>, tensor<100x3xf32>, tensor<100x3xf32>, tensor<100x3xf32>, tensor<100xi32>, tensor<100xf32>, tensor<100x3xf32>
    }
    return %2#4, %2#5, %2#6, %2#7, %2#8, %2#9, %2#10, %2#11, %2#12, %2#13, %2#14, %2#15, %2#16, %2#17, %2#18, %2#19, %2#20, %2#21, %2#22, %2#23, %2#24, %2#25, %2#26, %2#27, %2#28, %2#29, %2#30, %2#31, %2#32, %2#33, %2#34, %2#35, %2#36, %2#37, %2#38, %2#39, %2#40, %2#41, %2#42, %2#43, %2#44, %2#45, %2#46, %2#47, %2#48, %2#49, %2#50, %2#51, %2#52, %2#53, %2#54, %2#55, %2#56, %2#57 : tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xi1>, tensor<100xi1>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100x2xf32>, tensor<100xi32>, tensor<100xi32>, tensor<100xf32>, tensor<100xf32>, tensor<100xf32>, tensor<100xi32>, tensor<100xf32>, tensor<100xf32>, tensor<100x3xf32>, tensor<100x3xf32>, tensor<100x3xf32>, tensor<100xi32>, tensor<100xf32>, tensor<100x3xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<100x2xui32>, %arg1: tensor<i32>) -> tensor<2xui32> {
    %c = stablehlo.constant dense<0> : tensor<2xui32>
    return %c : tensor<2xui32>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<100x2xi32>, %arg1: tensor<i32>) -> tensor<2xi32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 2] : (tensor<100x2xi32>, tensor<i32>, tensor<i32>) -> tensor<1x2xi32>
    %1 = stablehlo.reshape %0 : (tensor<1x2xi32>) -> tensor<2xi32>
    return %1 : tensor<2xi32>
  }
  func.func private @closed_call(%arg0: tensor<2xf32>, %arg1: tensor<f32>, %arg2: tensor<2xf32>, %arg3: tensor<f32>, %arg4: tensor<f32>, %arg5: tensor<2xf32>, %arg6: tensor<f32>, %arg7: tensor<f32>, %arg8: tensor<i32>, %arg9: tensor<f32>, %arg10: tensor<f32>, %arg11: tensor<3xf32>, %arg12: tensor<3xf32>, %arg13: tensor<3xf32>, %arg14: tensor<i32>, %arg15: tensor<f32>, %arg16: tensor<3xf32>, %arg17: tensor<2xui32>, %arg18: tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<i1>, tensor<i1>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<3xf32>
    %c = stablehlo.constant dense<0> : tensor<ui32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<10x3xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<2xf32>
    %c_2 = stablehlo.constant dense<0> : tensor<2xui32>
    %c_3 = stablehlo.constant dense<2> : tensor<i32>
    %c_4 = stablehlo.constant dense<-1> : tensor<i32>
    %c_5 = stablehlo.constant dense<1> : tensor<i32>
    %c_6 = stablehlo.constant dense<false> : tensor<i1>
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %cst_9 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.divide %cst, %cst : tensor<3xf32>
    %1 = call @_threefry_split(%arg17) : (tensor<2xui32>) -> tensor<2x2xui32>
    %2 = call @_normal(%c_2) : (tensor<2xui32>) -> tensor<3xf32>
    %3 = stablehlo.multiply %0, %2 : tensor<3xf32>
    %4 = stablehlo.add %cst, %3 : tensor<3xf32>
    %5 = stablehlo.slice %4 [1:3] : (tensor<3xf32>) -> tensor<2xf32>
    %6 = stablehlo.multiply %arg16, %cst : tensor<3xf32>
    %7 = stablehlo.dot_general %6, %cst, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
    %8 = stablehlo.multiply %cst_9, %7 : tensor<f32>
    %9 = stablehlo.add %cst_10, %8 : tensor<f32>
    %10:39 = stablehlo.while(%iterArg = %c_2, %iterArg_11 = %arg16, %iterArg_12 = %9, %iterArg_13 = %arg15, %iterArg_14 = %arg0, %iterArg_15 = %c_8, %iterArg_16 = %arg1, %iterArg_17 = %arg2, %iterArg_18 = %cst_10, %iterArg_19 = %5, %iterArg_20 = %arg3, %iterArg_21 = %arg4, %iterArg_22 = %arg5, %iterArg_23 = %9, %iterArg_24 = %cst_10, %iterArg_25 = %cst_7, %iterArg_26 = %arg1, %iterArg_27 = %arg2, %iterArg_28 = %cst_10, %iterArg_29 = %5, %iterArg_30 = %arg3, %iterArg_31 = %arg4, %iterArg_32 = %arg5, %iterArg_33 = %arg1, %iterArg_34 = %arg2, %iterArg_35 = %cst_10, %iterArg_36 = %5, %iterArg_37 = %arg3, %iterArg_38 = %arg4, %iterArg_39 = %arg5, %iterArg_40 = %cst_10, %iterArg_41 = %5, %iterArg_42 = %c_8, %iterArg_43 = %cst_0, %iterArg_44 = %cst_0, %iterArg_45 = %c_8, %iterArg_46 = %c_8, %iterArg_47 = %c_6, %iterArg_48 = %c_6) : tensor<2xui32>, tensor<3xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<i32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<i32>, tensor<10x3xf32>, tensor<10x3xf32>, tensor<i32>, tensor<i32>, tensor<i1>, tensor<i1>
    cond {
      stablehlo.return %c_6 : tensor<i1>
    } do {
      %15 = func.call @_threefry_fold_in(%iterArg, %c) : (tensor<2xui32>, tensor<ui32>) -> tensor<2xui32>
      %16 = func.call @_threefry_split_3(%c_2) : (tensor<2xui32>) -> tensor<3x2xui32>
      %17 = func.call @_bernoulli(%c_2, %cst_9) : (tensor<2xui32>, tensor<f32>) -> tensor<i1>
      %18 = func.call @_where(%c_6, %c_5, %c_4) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %19 = func.call @_where_6(%c_6, %c_8, %c_5) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %20 = func.call @_where_7(%c_8, %c_8, %c_8) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %21 = func.call @_where_7(%c_8, %c_8, %c_8) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %22 = func.call @_where_7(%c_8, %c_8, %c_8) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %23 = func.call @_where_7(%c_8, %c_8, %c_8) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %24 = func.call @_where_7(%c_8, %c_8, %c_8) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %25 = func.call @_where_7(%c_8, %c_8, %c_8) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
      %26 = func.call @_where_8(%c_6, %cst_7, %cst_10) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %27:41 = stablehlo.while(%iterArg_49 = %c_8, %iterArg_50 = %c_2, %iterArg_51 = %c_8, %iterArg_52 = %iterArg_13, %iterArg_53 = %iterArg_11, %iterArg_54 = %iterArg_14, %iterArg_55 = %iterArg_12, %iterArg_56 = %c_8, %iterArg_57 = %cst_10, %iterArg_58 = %cst_1, %iterArg_59 = %cst_10, %iterArg_60 = %cst_1, %iterArg_61 = %cst_10, %iterArg_62 = %cst_10, %iterArg_63 = %cst_1, %iterArg_64 = %cst_10, %iterArg_65 = %cst_10, %iterArg_66 = %cst_10, %iterArg_67 = %cst_10, %iterArg_68 = %cst_1, %iterArg_69 = %cst_10, %iterArg_70 = %cst_1, %iterArg_71 = %cst_10, %iterArg_72 = %cst_10, %iterArg_73 = %cst_1, %iterArg_74 = %cst_10, %iterArg_75 = %cst_1, %iterArg_76 = %cst_10, %iterArg_77 = %cst_1, %iterArg_78 = %cst_10, %iterArg_79 = %cst_10, %iterArg_80 = %cst_1, %iterArg_81 = %cst_10, %iterArg_82 = %cst_1, %iterArg_83 = %c_8, %iterArg_84 = %iterArg_43, %iterArg_85 = %iterArg_44, %iterArg_86 = %iterArg_45, %iterArg_87 = %iterArg_46, %iterArg_88 = %c_6, %iterArg_89 = %c_6) : tensor<i32>, tensor<2xui32>, tensor<i32>, tensor<f32>, tensor<3xf32>, tensor<2xf32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<i32>, tensor<10x3xf32>, tensor<10x3xf32>, tensor<i32>, tensor<i32>, tensor<i1>, tensor<i1>
      cond {
        stablehlo.return %c_6 : tensor<i1>
      } do {
        %30 = func.call @_threefry_fold_in(%iterArg_50, %c) : (tensor<2xui32>, tensor<ui32>) -> tensor<2xui32>
        %31 = func.call @_where_8(%c_6, %cst_7, %cst_10) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
        %32 = func.call @_bernoulli(%c_2, %cst_10) : (tensor<2xui32>, tensor<f32>) -> tensor<i1>
        %33 = func.call @bitwise_count(%c_8) : (tensor<i32>) -> tensor<ui8>
        %34 = func.call @bitwise_count(%c_8) : (tensor<i32>) -> tensor<ui8>
        %35 = func.call @remainder(%iterArg_56, %c_3) : (tensor<i32>, tensor<i32>) -> tensor<i32>
        stablehlo.return %iterArg_49, %iterArg_50, %iterArg_51, %iterArg_52, %iterArg_53, %iterArg_54, %iterArg_55, %c_8, %cst_10, %cst_1, %cst_10, %cst_1, %cst_10, %cst_10, %cst_1, %cst_10, %cst_10, %cst_10, %cst_10, %cst_1, %cst_10, %cst_1, %cst_10, %cst_10, %cst_1, %cst_10, %cst_1, %cst_10, %cst_1, %cst_10, %cst_10, %cst_1, %cst_10, %cst_1, %c_8, %cst_0, %cst_0, %c_8, %c_8, %c_6, %c_6 : tensor<i32>, tensor<2xui32>, tensor<i32>, tensor<f32>, tensor<3xf32>, tensor<2xf32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<i32>, tensor<10x3xf32>, tensor<10x3xf32>, tensor<i32>, tensor<i32>, tensor<i1>, tensor<i1>
      }
      %28 = func.call @clip(%cst_10, %c_5) : (tensor<f32>, tensor<i32>) -> tensor<f32>
      %29 = func.call @_bernoulli(%c_2, %cst_10) : (tensor<2xui32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %iterArg, %iterArg_11, %iterArg_12, %iterArg_13, %iterArg_14, %c_8, %cst_10, %cst_1, %cst_10, %cst_1, %cst_10, %cst_10, %cst_1, %cst_10, %cst_10, %cst_10, %cst_10, %cst_1, %cst_10, %cst_1, %cst_10, %cst_10, %cst_1, %cst_10, %cst_1, %cst_10, %cst_1, %cst_10, %cst_10, %cst_1, %cst_10, %cst_1, %c_8, %cst_0, %cst_0, %c_8, %c_8, %c_6, %c_6 : tensor<2xui32>, tensor<3xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<i32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<i32>, tensor<10x3xf32>, tensor<10x3xf32>, tensor<i32>, tensor<i32>, tensor<i1>, tensor<i1>
    }
    %11 = stablehlo.slice %arg18 [0:1] : (tensor<2xi32>) -> tensor<1xi32>
    %12 = stablehlo.reshape %11 : (tensor<1xi32>) -> tensor<i32>
    %13 = stablehlo.clamp %c_8, %12, %c_5 : tensor<i32>
    %14:9 = "stablehlo.case"(%13) ({
      %15 = stablehlo.add %cst_10, %cst_10 : tensor<f32>
      stablehlo.return %cst_10, %15, %c_8, %cst_10, %arg12, %arg13, %arg14, %cst_10, %arg16 : tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>
    }, {
      %15 = stablehlo.reshape %10#6 : (tensor<f32>) -> tensor<1xf32>
      %16 = stablehlo.concatenate %15, %10#7, dim = 0 : (tensor<1xf32>, tensor<2xf32>) -> tensor<3xf32>
      %17 = stablehlo.add %arg12, %0 : tensor<3xf32>
      %18 = stablehlo.subtract %16, %17 : tensor<3xf32>
      %19 = stablehlo.multiply %cst, %18 : tensor<3xf32>
      %20 = stablehlo.add %arg13, %19 : tensor<3xf32>
      stablehlo.return %cst_10, %cst_10, %c_8, %cst_10, %17, %20, %c_8, %cst_10, %arg11 : tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>
    }) : (tensor<i32>) -> (tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>)
    return %10#6, %10#7, %10#10, %10#11, %10#12, %14#0, %14#1, %14#2, %14#3, %arg10, %arg11, %14#4, %14#5, %14#6, %14#7, %14#8, %10#6, %10#7, %10#10, %10#11, %10#12, %cst_10, %5, %10#37, %10#38, %10#13, %10#16, %10#17, %10#18, %10#19, %10#20, %10#21, %10#22, %10#23, %10#24, %10#25, %10#26, %10#27, %10#28, %10#29, %10#5, %10#32, %cst_10, %14#0, %14#1, %14#2, %14#3, %arg10, %arg11, %14#4, %14#5, %14#6, %14#7, %14#8 : tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<i1>, tensor<i1>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<2xf32>, tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i32>, tensor<f32>, tensor<3xf32>
  }
  func.func private @_threefry_split(%arg0: tensor<2xui32>) -> tensor<2x2xui32> {
    %c = stablehlo.constant dense<0> : tensor<2x2xui32>
    %c_0 = stablehlo.constant dense<0> : tensor<2xui32>
    %c_1 = stablehlo.constant dense<0> : tensor<ui32>
    %0:2 = call @threefry2x32(%c_1, %c_1, %c_0, %c_0) : (tensor<ui32>, tensor<ui32>, tensor<2xui32>, tensor<2xui32>) -> (tensor<2xui32>, tensor<2xui32>)
    return %c : tensor<2x2xui32>
  }
  func.func private @threefry2x32(%arg0: tensor<ui32>, %arg1: tensor<ui32>, %arg2: tensor<2xui32>, %arg3: tensor<2xui32>) -> (tensor<2xui32>, tensor<2xui32>) {
    %c = stablehlo.constant dense<0> : tensor<2xui32>
    return %c, %c : tensor<2xui32>, tensor<2xui32>
  }
  func.func private @_normal(%arg0: tensor<2xui32>) -> tensor<3xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<3xf32>
    %0 = call @_normal_real(%arg0) : (tensor<2xui32>) -> tensor<3xf32>
    return %cst : tensor<3xf32>
  }
  func.func private @_normal_real(%arg0: tensor<2xui32>) -> tensor<3xf32> {
    %cst = stablehlo.constant dense<-0.99999994> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<3xf32>
    %0 = call @_uniform(%arg0, %cst, %cst_0) : (tensor<2xui32>, tensor<f32>, tensor<f32>) -> tensor<3xf32>
    return %cst_1 : tensor<3xf32>
  }
  func.func private @_uniform(%arg0: tensor<2xui32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<3xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<3xf32>
    %c = stablehlo.constant dense<0> : tensor<3xui32>
    %c_0 = stablehlo.constant dense<0> : tensor<ui32>
    %0:2 = call @threefry2x32_1(%c_0, %c_0, %c, %c) : (tensor<ui32>, tensor<ui32>, tensor<3xui32>, tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>)
    return %cst : tensor<3xf32>
  }
  func.func private @threefry2x32_1(%arg0: tensor<ui32>, %arg1: tensor<ui32>, %arg2: tensor<3xui32>, %arg3: tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>) {
    %c = stablehlo.constant dense<0> : tensor<3xui32>
    return %c, %c : tensor<3xui32>, tensor<3xui32>
  }
  func.func private @_threefry_fold_in(%arg0: tensor<2xui32>, %arg1: tensor<ui32>) -> tensor<2xui32> {
    %c = stablehlo.constant dense<0> : tensor<2xui32>
    %c_0 = stablehlo.constant dense<0> : tensor<1xui32>
    %c_1 = stablehlo.constant dense<0> : tensor<ui32>
    %0:2 = call @threefry2x32_2(%c_1, %c_1, %c_0, %c_0) : (tensor<ui32>, tensor<ui32>, tensor<1xui32>, tensor<1xui32>) -> (tensor<1xui32>, tensor<1xui32>)
    return %c : tensor<2xui32>
  }
  func.func private @threefry2x32_2(%arg0: tensor<ui32>, %arg1: tensor<ui32>, %arg2: tensor<1xui32>, %arg3: tensor<1xui32>) -> (tensor<1xui32>, tensor<1xui32>) {
    %c = stablehlo.constant dense<0> : tensor<1xui32>
    return %c, %c : tensor<1xui32>, tensor<1xui32>
  }
  func.func private @_threefry_split_3(%arg0: tensor<2xui32>) -> tensor<3x2xui32> {
    %c = stablehlo.constant dense<0> : tensor<3x2xui32>
    %c_0 = stablehlo.constant dense<0> : tensor<3xui32>
    %c_1 = stablehlo.constant dense<0> : tensor<ui32>
    %0:2 = call @threefry2x32_1(%c_1, %c_1, %c_0, %c_0) : (tensor<ui32>, tensor<ui32>, tensor<3xui32>, tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>)
    return %c : tensor<3x2xui32>
  }
  func.func private @_bernoulli(%arg0: tensor<2xui32>, %arg1: tensor<f32>) -> tensor<i1> {
    %c = stablehlo.constant dense<false> : tensor<i1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = call @_uniform_4(%arg0, %cst, %cst_0) : (tensor<2xui32>, tensor<f32>, tensor<f32>) -> tensor<f32>
    return %c : tensor<i1>
  }
  func.func private @_uniform_4(%arg0: tensor<2xui32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
    %c = stablehlo.constant dense<0> : tensor<ui32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0:2 = call @threefry2x32_5(%c, %c, %c, %c) : (tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>) -> (tensor<ui32>, tensor<ui32>)
    return %cst : tensor<f32>
  }
  func.func private @threefry2x32_5(%arg0: tensor<ui32>, %arg1: tensor<ui32>, %arg2: tensor<ui32>, %arg3: tensor<ui32>) -> (tensor<ui32>, tensor<ui32>) {
    %c = stablehlo.constant dense<0> : tensor<ui32>
    return %c, %c : tensor<ui32>, tensor<ui32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    return %c : tensor<i32>
  }
  func.func private @_where_6(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    return %c : tensor<i32>
  }
  func.func private @_where_7(%arg0: tensor<i32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    return %c : tensor<i32>
  }
  func.func private @_where_8(%arg0: tensor<i1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<f32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    return %cst : tensor<f32>
  }
  func.func private @bitwise_count(%arg0: tensor<i32>) -> tensor<ui8> {
    %c = stablehlo.constant dense<0> : tensor<ui8>
    return %c : tensor<ui8>
  }
  func.func private @remainder(%arg0: tensor<i32>, %arg1: tensor<i32>) -> tensor<i32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<false> : tensor<i1>
    %0 = call @_where_9(%c_1, %c, %arg1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    return %c_0 : tensor<i32>
  }
  func.func private @_where_9(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    return %c : tensor<i32>
  }
  func.func private @clip(%arg0: tensor<f32>, %arg1: tensor<i32>) -> tensor<f32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    return %cst : tensor<f32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<100xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<100xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<100xf32>
    return %cst : tensor<100xf32>
  }
  func.func private @dynamic_update_index_in_dim_10(%arg0: tensor<100x2xf32>, %arg1: tensor<2xf32>, %arg2: tensor<i32>) -> tensor<100x2xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<100x2xf32>
    return %cst : tensor<100x2xf32>
  }
  func.func private @dynamic_update_index_in_dim_11(%arg0: tensor<100xi1>, %arg1: tensor<i1>, %arg2: tensor<i32>) -> tensor<100xi1> {
    %c = stablehlo.constant dense<false> : tensor<100xi1>
    return %c : tensor<100xi1>
  }
  func.func private @dynamic_update_index_in_dim_12(%arg0: tensor<100xi32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<100xi32> {
    %c = stablehlo.constant dense<0> : tensor<100xi32>
    return %c : tensor<100xi32>
  }
  func.func private @dynamic_update_index_in_dim_13(%arg0: tensor<100xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<100xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<100xf32>
    return %cst : tensor<100xf32>
  }
  func.func private @dynamic_update_index_in_dim_14(%arg0: tensor<100x3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<i32>) -> tensor<100x3xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<100x3xf32>
    return %cst : tensor<100x3xf32>
  }
}
