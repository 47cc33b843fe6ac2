// The loop that adds up columns of the scores' gradient widens the scores for the label's as well. It stores the
// gradient where that is multiplied by the rounds and the result turned.
// TRUTH libtpu 0.0.51, compiled ahead of time
// EXPECT tpu-v3: peak 5148508.16 ±1%
// EXPECT tpu-v5e: peak 5410652.16 ±1%
!h = tensor<32x16x128xbf16>
!x = tensor<16x32x128xbf16>
!w = tensor<128x1000xbf16>
!z = tensor<16x32x1000xf32>
!n = tensor<16x32x1000xbf16>
!r = tensor<16x32xf32>
!i = tensor<i32>
!t = tensor<16x128xbf16>
!a = tensor<16x32x1x1xi32>
func.func public @main(%h: !h, %w: !w, %b: tensor<1000xbf16>, %l: tensor<16x32xi32>) -> (tensor<f32>, !x, !w, tensor<1000xbf16>) {
  %c0 = stablehlo.constant dense<0> : !i
  %c1 = stablehlo.constant dense<1> : !i
  %c32 = stablehlo.constant dense<32> : !i
  %o = stablehlo.constant dense<0.0> : tensor<bf16>
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %k = stablehlo.constant dense<0.001953125> : !r
  %s0 = stablehlo.constant dense<0.0> : !t
  %h0 = stablehlo.constant dense<0.0> : !h
  %z0 = stablehlo.constant dense<0.0> : !z
  %q:4 = stablehlo.while(%x = %h, %n = %c0, %s = %s0, %y = %h0) : !h, !i, !t, !h
  cond {
    %1 = stablehlo.compare LT, %n, %c32, SIGNED : (!i, !i) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.dynamic_slice %x, %n, %c0, %c0, sizes = [1, 16, 128] : (!h, !i, !i, !i) -> tensor<1x16x128xbf16>
    %2 = stablehlo.reshape %1 : (tensor<1x16x128xbf16>) -> !t
    %3 = stablehlo.add %s, %2 : !t
    %4 = stablehlo.tanh %3 : !t
    %5 = stablehlo.reshape %4 : (!t) -> tensor<1x16x128xbf16>
    %6 = stablehlo.dynamic_update_slice %y, %5, %n, %c0, %c0 : (!h, tensor<1x16x128xbf16>, !i, !i, !i) -> !h
    %7 = stablehlo.add %n, %c1 : !i
    stablehlo.return %x, %7, %4, %6 : !h, !i, !t, !h
  }
  %0 = stablehlo.transpose %q#3, dims = [1, 0, 2] : (!h) -> !x
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [2] x [0] : (!x, !w) -> !n
  %2 = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<1000xbf16>) -> !n
  %3 = stablehlo.add %1, %2 : !n
  %4 = stablehlo.convert %3 : (!n) -> !z
  %5 = stablehlo.reduce(%4 init: %m) applies stablehlo.maximum across dimensions = [2] : (!z, tensor<f32>) -> !r
  %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (!r) -> !z
  %7 = stablehlo.subtract %4, %6 : !z
  %e = stablehlo.exponential %7 : !z
  %8 = stablehlo.reduce(%e init: %f) applies stablehlo.add across dimensions = [2] : (!z, tensor<f32>) -> !r
  %9 = stablehlo.log %8 : !r
  %10 = stablehlo.add %9, %5 : !r
  %a = stablehlo.reshape %l : (tensor<16x32xi32>) -> !a
  %11 = "stablehlo.gather"(%4, %a) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (!z, !a) -> tensor<16x32x1xf32>
  %12 = stablehlo.reshape %11 : (tensor<16x32x1xf32>) -> !r
  %13 = stablehlo.subtract %10, %12 : !r
  %14 = stablehlo.reduce(%13 init: %f) applies stablehlo.add across dimensions = [0, 1] : (!r, tensor<f32>) -> tensor<f32>
  %15 = stablehlo.negate %k : !r
  %16 = stablehlo.reshape %15 : (!r) -> tensor<16x32x1xf32>
  %17 = "stablehlo.scatter"(%z0, %a, %16) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>, unique_indices = false}> ({
  ^bb0(%u: tensor<f32>, %v: tensor<f32>):
    %y = stablehlo.add %u, %v : tensor<f32>
    stablehlo.return %y : tensor<f32>
  }) : (!z, !a, tensor<16x32x1xf32>) -> !z
  %18 = stablehlo.divide %k, %8 : !r
  %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1] : (!r) -> !z
  %20 = stablehlo.multiply %19, %e : !z
  %21 = stablehlo.add %17, %20 : !z
  %22 = stablehlo.convert %21 : (!z) -> !n
  %23 = stablehlo.reduce(%22 init: %o) applies stablehlo.add across dimensions = [0, 1] : (!n, tensor<bf16>) -> tensor<1000xbf16>
  %24 = stablehlo.dot_general %22, %0, contracting_dims = [0, 1] x [0, 1] : (!n, !x) -> tensor<1000x128xbf16>
  %25 = stablehlo.dot_general %22, %w, contracting_dims = [2] x [1] : (!n, !w) -> !x
  %26 = stablehlo.transpose %24, dims = [1, 0] : (tensor<1000x128xbf16>) -> !w
  return %14, %25, %26, %23 : tensor<f32>, !x, !w, tensor<1000xbf16>
}
