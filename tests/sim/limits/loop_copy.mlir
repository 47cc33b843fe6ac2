module {
  func.func public @main(%a0: tensor<10007x1024xf32>, %a1: tensor<1024x1024xf32>) -> (tensor<10007x1024xf32>) {
    %v1 = stablehlo.constant dense<0> : tensor<i32>
    %v2 = stablehlo.constant dense<1> : tensor<i32>
    %v3 = stablehlo.constant dense<2> : tensor<i32>
    %v4, %v5 = "stablehlo.while"(%v1, %a0) ({ ^bb0(%i: tensor<i32>, %y: tensor<10007x1024xf32>): %c = "stablehlo.compare"(%i, %v3) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1> "stablehlo.return"(%c) : (tensor<i1>) -> () }, { ^bb0(%i: tensor<i32>, %y: tensor<10007x1024xf32>): %q = "stablehlo.dot_general"(%y, %a1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} : (tensor<10007x1024xf32>, tensor<1024x1024xf32>) -> tensor<10007x1024xf32> %j = "stablehlo.add"(%i, %v2) : (tensor<i32>, tensor<i32>) -> tensor<i32> "stablehlo.return"(%j, %q) : (tensor<i32>, tensor<10007x1024xf32>) -> () }) : (tensor<i32>, tensor<10007x1024xf32>) -> (tensor<i32>, tensor<10007x1024xf32>)
    "func.return"(%v5) : (tensor<10007x1024xf32>) -> ()
  }
}
