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
    assert p.returncode == 1 and "argument 0 has no fixed shape" in p.stderr


def test_training_step(tmp_path):
    f = tmp_path / "step.mlir"
    assert weft("train", "mnist", "--data", "synthetic", "--batch", 4, "--dump-step", f).returncode == 0
    first = diff(f, "cpu,tpu-v3-8")["first"]
    assert first["op"] == "stablehlo.convolution" and first["place"] == "mnist/conv1"
    shown = weft("diff", f, "--devices", "cpu,tpu-v3-8").stdout  # Adam takes the root of its random second moments
    assert "NaN in one" in shown and "--in FILE.npz" in shown


def test_devices_are_two():
    for devices in ("cpu", "cpu,", ",cpu", "cpu,cpu,cpu"):
        p = weft("diff", CORPUS / "conv_2d_same.mlir", "--devices", devices)
        assert p.returncode == 2 and "two names" in p.stderr


def test_the_first_alone(tmp_path):
    """--top 0 stops at the operation where they part."""
    p = weft("diff", CORPUS / "conv_2d_same.mlir", "--devices", "cpu,tpu-v3-8", "--top", 0)
    assert p.returncode == 1 and "part at element" in p.stdout and "stablehlo.convolution" in p.stdout
    assert "most error added" not in p.stdout


def test_several_devices():
    """One that is cut at its ends runs whole; one that says what each device does is answered with what can be compared."""
    assert weft("diff", CORPUS / "tp_train_step_gspmd.mlir").returncode == 0
    p = weft("diff", CORPUS / "coll_psum_gspmd.mlir")
    assert p.returncode == 1 and "of 8 devices, on one" in p.stderr and "--device cpu:8" in p.stderr
