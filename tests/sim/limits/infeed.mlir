// A few numbers from the host: what is written is whole tiles of them.
module {
  func.func public @main() -> tensor<2x3xf32> {
    %0 = "stablehlo.create_token"() : () -> !stablehlo.token
    %1:2 = "stablehlo.infeed"(%0) {infeed_config = ""} : (!stablehlo.token) -> (tensor<2x3xf32>, !stablehlo.token)
    return %1#0 : tensor<2x3xf32>
  }
}
