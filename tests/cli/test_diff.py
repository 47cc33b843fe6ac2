"""`weft diff` names the operation where two devices part: the chip's matrix precision, and nothing where there is none."""
import json

import pytest

from conftest import CORPUS, weft


def diff(program, devices):
    p = weft("diff", program, "--devices", devices, "--json")
    assert p.returncode in (0, 1), p.stderr
    d = json.loads(p.stdout)
    assert d["agree"] == (p.returncode == 0) == (d["first"] is None)
    return d


def test_convolution():
    d = diff(CORPUS / "conv_2d_same.mlir", "cpu,tpu-v3-8")
    assert d["first"]["op"] == "stablehlo.convolution" and 1e-4 < d["first"]["error"] < 2e-2 and "precision" in d["first"]["reason"]
    assert diff(CORPUS / "conv_2d_same.mlir", "cpu,T4")["agree"]  # f32 stays f32 where there is no tf32
    a100 = diff(CORPUS / "conv_2d_same.mlir", "cpu,A100")["first"]
    assert a100["op"] == "stablehlo.convolution" and a100["error"] < d["first"]["error"]


@pytest.mark.parametrize("precision,low,high", [("DEFAULT", 1e-4, 1e-1), ("HIGH", 1e-7, 1e-4), ("HIGHEST", 0, 2e-6)])
def test_passes(tmp_path, precision, low, high):
    """1, 3 and 6 passes of bfloat16; the exponential before the product is the same on both."""
    f = tmp_path / "p.mlir"
    f.write_text("func.func @main(%a: tensor<32x64xf32>, %b: tensor<64x16xf32>) -> tensor<32x16xf32> {\n"
                 "  %0 = stablehlo.tanh %a : tensor<32x64xf32>\n"
                 f"  %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0], precision = [{precision}, {precision}] : "
                 "(tensor<32x64xf32>, tensor<64x16xf32>) -> tensor<32x16xf32>\n"
                 "  %2 = stablehlo.abs %1 : tensor<32x16xf32>\n  return %2 : tensor<32x16xf32>\n}\n")
    p = weft("diff", f, "--devices", "cpu,tpu-v3-8", "--tol", "1e-9", "--json")
    d = json.loads(p.stdout)
    if d["first"] is None:
        assert precision == "HIGHEST"
    else:
        assert d["first"]["op"] == "stablehlo.dot_general" and low <= d["first"]["error"] <= high


def test_moved_values(tmp_path):
    """What only moves numbers is not listed but hands on its operands' error: the sum adds little to the product's."""
    f = tmp_path / "p.mlir"
    f.write_text("func.func @main(%a: tensor<32x64xf32>, %b: tensor<64x16xf32>) -> tensor<16x32xf32> {\n"
                 "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : "
                 "(tensor<32x64xf32>, tensor<64x16xf32>) -> tensor<32x16xf32>\n"
                 "  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<32x16xf32>) -> tensor<16x32xf32>\n"
                 "  %2 = stablehlo.negate %1 : tensor<16x32xf32>\n  return %2 : tensor<16x32xf32>\n}\n")
    d = json.loads(weft("diff", f, "--devices", "cpu,tpu-v3-8", "--json").stdout)
    assert d["values"] == 2 and [t["op"] for t in d["top"]] == ["stablehlo.dot_general"]


def test_dynamic_shape(tmp_path):
    f = tmp_path / "d.mlir"
    f.write_text("func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {\n  return %x : tensor<?x4xf32>\n}\n")
    p = weft("diff", f)
    assert p.returncode == 1 and f"{f}: argument 0 has no fixed shape" in p.stderr and "hint: " in p.stderr


def test_training_step(tmp_path):
    f = tmp_path / "step.mlir"
    assert weft("train", "mnist", "--data", "synthetic", "--batch", 4, "--dump-step", f).returncode == 0
    first = diff(f, "cpu,tpu-v3-8")["first"]
    assert first["op"] == "stablehlo.convolution" and first["place"] == "mnist/conv1"
    shown = weft("diff", f, "--devices", "cpu,tpu-v3-8").stdout  # Adam's made-up second moments are not negative
    assert "NaN in one" not in shown


def test_devices_are_two():
    for devices in ("cpu", "cpu,", ",cpu", "cpu,cpu,cpu"):
        p = weft("diff", CORPUS / "conv_2d_same.mlir", "--devices", devices)
        assert p.returncode == 2 and "two names" in p.stderr


def test_the_first_alone(tmp_path):
    """--top 0 stops at the operation where they part."""
    p = weft("diff", CORPUS / "conv_2d_same.mlir", "--devices", "cpu,tpu-v3-8", "--top", 0)
    assert p.returncode == 1 and "part first in stablehlo.convolution, most at its element" in p.stdout
    assert "most error added" not in p.stdout


def test_several_devices():
    """One that is cut at its ends runs whole; one that says what each device does is answered with what can be compared."""
    assert weft("diff", CORPUS / "tp_train_step_gspmd.mlir").returncode == 0
    p = weft("diff", CORPUS / "coll_psum_gspmd.mlir")
    assert p.returncode == 1 and "of 8 devices, on one" in p.stderr and "--device cpu:8" in p.stderr


def test_the_operation_inside_a_loop():
    """The first round brings the states apart, by the first product in it."""
    d = diff(CORPUS / "train_lstm_adam.mlirbc", "cpu,tpu-v3")
    assert d["first"]["op"] == "stablehlo.while"
    inside = d["inside"]
    assert inside["path"] == [{"round": 1}] and inside["op"] == "stablehlo.dot_general" and "precision" in inside["reason"]
    shown = weft("diff", CORPUS / "train_lstm_adam.mlirbc", "--devices", "cpu,tpu-v3", "--top", 0).stdout
    assert "max|a-b| / max|a|" in shown and "inside it, in round 1" in shown and "stablehlo.dot_general" in shown


LOOPS = """func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %n = stablehlo.constant dense<3> : tensor<i32>
  %z = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %z, %v = %x) : tensor<i32>, tensor<8x8xf32>
   cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %q = stablehlo.subtract %i, %one : tensor<i32>
    %b = "stablehlo.case"(%q) ({
      %s:2 = stablehlo.while(%k = %z, %u = %v) : tensor<i32>, tensor<8x8xf32>
       cond {
        %c = stablehlo.compare LT, %k, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %k1 = stablehlo.add %k, %one : tensor<i32>
        %d = stablehlo.dot_general %u, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
        stablehlo.return %k1, %d : tensor<i32>, tensor<8x8xf32>
      }
      stablehlo.return %s#1 : tensor<8x8xf32>
    }, {
      %a1 = stablehlo.negate %v : tensor<8x8xf32>
      stablehlo.return %a1 : tensor<8x8xf32>
    }) : (tensor<i32>) -> tensor<8x8xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %b : tensor<i32>, tensor<8x8xf32>
  }
  return %r#1 : tensor<8x8xf32>
}
"""


def test_loops_and_branches_in_loops(tmp_path):
    """Round 1 takes the other branch and parts nothing."""
    f = tmp_path / "loops.mlir"
    f.write_text(LOOPS)
    inside = diff(f, "cpu,tpu-v3")["inside"]
    assert inside["path"] == [{"round": 2}, {"branch": 0}, {"round": 1}]
    assert inside["op"] == "stablehlo.dot_general" and inside["place"].endswith("loops.mlir:18:14")


def test_the_condition_of_a_loop_parts(tmp_path):
    f = tmp_path / "until.mlir"
    f.write_text("""func.func @main(%x: tensor<64x64xf32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %big = stablehlo.constant dense<1.0e-4> : tensor<f32>
  %r = stablehlo.while(%i = %z) : tensor<f32>
   cond {
    %d = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %h = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %s = stablehlo.subtract %d, %h : tensor<64x64xf32>
    %a = stablehlo.abs %s : tensor<64x64xf32>
    %m = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<f32>
    %t = stablehlo.add %i, %big : tensor<f32>
    %c = stablehlo.compare GT, %m, %t : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    stablehlo.return %one : tensor<f32>
  }
  return %r : tensor<f32>
}
""")
    inside = diff(f, "cpu,tpu-v3")["inside"]
    assert inside["path"] == [{"round": 1}] and inside["op"] == "stablehlo.dot_general"


def test_cancelled_sums_do_not_lead(tmp_path):
    """The sum of centred numbers is rounding, whole or multiplied; the product's error is not."""
    f = tmp_path / "p.mlir"
    f.write_text("""func.func @main(%x: tensor<64x256xf32>, %y: tensor<64x256xf32>) -> tensor<64xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<256.0> : tensor<64xf32>
  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
  %m = stablehlo.divide %s, %n : tensor<64xf32>
  %b = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64xf32>) -> tensor<64x256xf32>
  %c = stablehlo.subtract %x, %b : tensor<64x256xf32>
  %r = stablehlo.reduce(%c init: %z) applies stablehlo.add across dimensions = [1] : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
  %k = stablehlo.multiply %r, %n : tensor<64xf32>
  return %k : tensor<64xf32>
}
""")
    d = diff(f, "cpu,interp")
    assert d["first"]["op"] == "stablehlo.reduce" and d["first"]["error"] > 0.01 and d["top"] == []
    assert "this is rounding" in weft("diff", f, "--devices", "cpu,interp").stdout
