"""`weft run` as a user meets it: files in and out, messages, exit status; the same programs on XLA's CPU plugin."""
import glob
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from conftest import BUILD, CORPUS, ROOT, assert_golden, manifest, weft  # noqa: E402

RUNNABLE = [e for e in manifest() if not e.get("decode_only")]
# a slice through the categories: the whole corpus runs in the C tests
SAMPLE = RUNNABLE[::7] + [e for e in RUNNABLE if e["name"] in ("train_mnist_cnn_adam", "dp_train_step_shardy")]


@pytest.mark.parametrize("entry", SAMPLE, ids=lambda e: e["name"])
@pytest.mark.parametrize("suffix", [".mlirbc", ".mlir"])
def test_golden_through_the_plugin(entry, suffix, tmp_path):
    out = tmp_path / "out.npz"
    r = weft("run", CORPUS / (entry["name"] + suffix), "--device", "cpu", "--in", CORPUS / (entry["name"] + ".npz"),
             "--out", out)
    assert r.returncode == 0, r.stderr
    if not entry.get("check") == "xla_values":
        assert_golden(entry, out)


def xla_cpu_plugin():
    spec = importlib.util.find_spec("lammps_jax_pjrt_cpu")
    return pathlib.Path(spec.origin).parent / "pjrt_c_api_cpu_plugin.so" if spec else None


# programs without platform-bound custom calls, one device: any plugin must run them
PORTABLE = [e for e in RUNNABLE[::12] if e["num_partitions"] == 1 and "stablehlo.custom_call" not in e["ops"]
            and e.get("check") is None]


@pytest.mark.parametrize("entry", PORTABLE, ids=lambda e: e["name"])
def test_golden_on_xla_cpu(entry, tmp_path):
    plugin = xla_cpu_plugin()
    assert plugin, "tests/requirements.txt installs XLA's CPU plugin"
    out = tmp_path / "out.npz"
    r = weft("run", CORPUS / (entry["name"] + ".mlirbc"), "--plugin", plugin, "--in",
             CORPUS / (entry["name"] + ".npz"), "--out", out)
    assert r.returncode == 0, r.stderr
    assert_golden(entry, out)


def write(path, text):
    path.write_text(text)
    return path


CHECK = """func.func @main() {
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  check.expect_eq_const %0, dense<[1.0, 2.0, VALUE]> : tensor<3xf32>
  func.return
}
"""


@pytest.mark.parametrize("device", ["interp", "cpu"])
def test_a_failing_check_names_the_element(device, tmp_path):
    good = write(tmp_path / "good.mlir", CHECK.replace("VALUE", "3.0"))
    bad = write(tmp_path / "bad.mlir", CHECK.replace("VALUE", "4.0"))
    assert weft("run", good, "--device", device).returncode == 0
    r = weft("run", bad, "--device", device)
    assert r.returncode == 1
    assert "2" in r.stderr and "3" in r.stderr and "4" in r.stderr, r.stderr


@pytest.mark.parametrize("text, words", [
    ("func.func @main() -> tensor<2xf32> {\n  %0 = stablehlo.constant dense<1.0> : tensor<3xf32>\n  return %0 : tensor<2xf32>\n}\n",
     [":3:"]),
    ("func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.add %a, %a : tensor<3xf32>\n  return %0 : tensor<3xf32>\n}\n", [":2:"]),
    ("func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.add %a, %b : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n",
     [":2:", "%b"]),
])
def test_bad_programs_name_the_line(text, words, tmp_path):
    r = weft("run", write(tmp_path / "bad.mlir", text), "--parse-only")
    assert r.returncode == 1
    for w in words:
        assert w in r.stderr, r.stderr


@pytest.mark.parametrize("device", ["interp", "cpu"])
def test_an_unknown_op_is_named(device, tmp_path):
    p = write(tmp_path / "p.mlir", "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
              "  %0 = stablehlo.nonsense %a : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n")
    np.savez(tmp_path / "in.npz", in0=np.zeros(2, np.float32))
    r = weft("run", p, "--device", device, "--in", tmp_path / "in.npz")
    assert r.returncode == 1 and "stablehlo.nonsense" in r.stderr and ":2:" in r.stderr, r.stderr


@pytest.mark.parametrize("contents, words", [
    (b"", ["empty"]),
    (b"HloModule jit_f\n", ["jit_f", "no entry computation"]),
    (b"{ lambda ; a:f32[2]. let b:f32[2] = sin a in (b,) }", ["jaxpr", "as_text()"]),
    (b"\x1f\x8b\x08\0zipped", ["neither StableHLO", "nor HLO"]),
    (b"\x3c\0\0\0\0\0exported\0ML\xefR\6", ["neither StableHLO", "mlir_module_serialized"]),
    (b"func.func private @f() {\n  return\n}\n", ["no function to run", "@main"]),
])
def test_what_is_no_program_is_named(contents, words, tmp_path):
    p = tmp_path / "p.mlir"
    p.write_bytes(contents)
    for verb in (["run"], ["diff"], ["estimate", "--chip", "T4"], ["advise", "--chip", "T4"], ["profile", "--chip", "T4"]):
        r = weft(verb[0], p, *verb[1:])
        assert r.returncode == 1 and str(p) in r.stderr and all(w in r.stderr for w in words), (verb, r.stderr)


def test_wrong_inputs_are_explained(tmp_path):
    p = write(tmp_path / "p.mlir", "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  return %a : tensor<2xf32>\n}\n")
    r = weft("run", p)
    assert r.returncode == 1 and "--in" in r.stderr
    np.savez(tmp_path / "in.npz", in0=np.zeros(3, np.float32))
    r = weft("run", p, "--in", tmp_path / "in.npz")
    assert r.returncode == 1 and "in0" in r.stderr and "tensor<2xf32>" in r.stderr
    r = weft("run", tmp_path / "absent.mlir")
    assert r.returncode == 1 and "absent.mlir" in r.stderr
    r = weft("run", p, "--device", "tpu-v99")
    assert r.returncode == 1 and "v99" in r.stderr


def test_wrong_usage_names_what_was_meant(tmp_path):
    for args, words in [
        (["trian"], ["trian", "train"]),
        (["train", "mnits"], ["mnist"]),
        (["train", "mnist", "--epohs", "3"], ["weft train", "--epohs", "--epochs"]),
        (["train", "mnist", "--lr"], ["--lr", "value"]),
        (["train", "mnist", "--steps", "0"], ["--steps", "at least 1", "'0'"]),
        (["train", "mnist", "--precision", "f12"], ["f32, bf16", "'f12'"]),
        (["run", "p.mlir", "--option", "novalue"], ["K=V", "novalue"]),
        (["estimate", "p.mlir"], ["--chip"]),
        (["estimate", "p.mlir", "--chip", "t4", "--kernels", "x"], ["--kernels", "'x'"]),
        (["systolic", "8", "8"], ["M N K"]),
        (["diff", "p.mlir", "--tol", "-1"], ["--tol", "'-1'"]),
        (["chips", "--prices"], ["which chip"]),
    ]:
        r = weft(*args)
        assert r.returncode == 2 and r.stdout == "", args
        assert all(w in r.stderr for w in words) and len(r.stderr.splitlines()) <= 2, (args, r.stderr)


def test_training_without_numbers_says_so():
    for device, value, said in [("T4", "1", True), ("T4", "0", False), ("cpu", "1", False)]:
        r = weft("train", "mlp", "--data", "synthetic", "--batch", "4", "--steps", "1", "--no-eval",
                 "--device", device, "--no-compare", env={"WEFT_PHANTOM": value})
        assert r.returncode == 0, r.stderr
        assert ("no losses" in r.stderr) == said, (device, value)


def test_every_verb_has_help():
    verbs = [line.split()[0] for line in weft("help").stdout.splitlines() if line.startswith("  ")]
    assert {"run", "train"} <= set(verbs)
    for verb in verbs:
        if verb == "version":
            continue
        r = weft(verb, "--help")
        assert r.returncode == 0 and f"usage: weft {verb}" in r.stdout, verb
        assert weft("help", verb).stdout == r.stdout
    assert weft("nonsense").returncode == 2


def test_print_reads_back(tmp_path):
    r = weft("run", CORPUS / "train_mnist_cnn_adam.mlirbc", "--print")
    assert r.returncode == 0
    again = weft("run", write(tmp_path / "again.mlir", r.stdout), "--print")
    assert again.stdout == r.stdout


def test_plugins_by_name_and_missing(tmp_path):
    (tmp_path / "mine.so").symlink_to(BUILD / "libpjrt_weft.so")
    text = "func.func @main() -> tensor<i32> { %0 = stablehlo.constant dense<7> : tensor<i32> return %0 : tensor<i32> }"
    program = write(tmp_path / "one.mlir", text)
    run = lambda so: subprocess.run([BUILD / "weft", "run", program, "--plugin", so], cwd=tmp_path, capture_output=True, text=True)  # noqa: E731
    r = run("mine.so")
    assert r.returncode == 0, r.stderr
    r = run("other.so")
    assert r.returncode == 1 and "other.so" in r.stderr and "libtpu/libtpu.so of libtpu" in r.stderr


def test_body_without_return(tmp_path):
    f = tmp_path / "p.mlir"
    f.write_text("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = stablehlo.abs %x : tensor<4xf32>\n}\n")
    for verb in ("run", "estimate", "diff"):
        p = weft(verb, f, *(["--chip", "T4"] if verb == "estimate" else []))
        assert p.returncode == 1 and "p.mlir:2:8: in @main: stablehlo.abs: the body ends here, without a return" in p.stderr


def test_made_up_arguments(tmp_path):
    """No root of a negative number, as of Adam's second moment; a hint where arguments are missing."""
    f, out = tmp_path / "adam.mlir", tmp_path / "out.npz"
    f.write_text("""
func.func private @step(%v: tensor<64xf32>, %g: tensor<64xf32>) -> tensor<64xf32> {
  %s = stablehlo.multiply %g, %g : tensor<64xf32>
  %n = stablehlo.add %v, %s : tensor<64xf32>
  %r = stablehlo.sqrt %n : tensor<64xf32>
  return %r : tensor<64xf32>
}
func.func @main(%v: tensor<64xf32>, %g: tensor<64xf32>, %i: tensor<3xi32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<3xi32>) {
  %r = call @step(%v, %g) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %r, %g, %i : tensor<64xf32>, tensor<64xf32>, tensor<3xi32>
}
""")
    assert weft("run", f, "--random", "--out", out).returncode == 0
    z = np.load(out)
    assert np.isfinite(z["out0"]).all() and z["out0"].min() > 0 and z["out1"].min() < 0 < z["out1"].max() and (z["out2"] >= 0).all()
    assert weft("run", f, "--zeros", "--out", out).returncode == 0
    assert not np.load(out)["out0"].any()
    assert "--random" in weft("run", f).stderr
    assert weft("run", f, "--random", "--zeros").returncode == 2


@pytest.mark.skipif(bool(glob.glob("/dev/accel*") or glob.glob("/dev/vfio/[0-9]*")), reason="has a TPU")
def test_libtpu_without_a_tpu(tmp_path):
    """Said at once, not after the minute and a half that libtpu looks for one."""
    f = tmp_path / "p.mlir"
    f.write_text("func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}\n")
    p = weft("run", f, "--zeros", "--plugin", "/nowhere/libtpu.so", timeout=20)
    assert p.returncode == 1 and "no TPU" in p.stderr and "--topology" in p.stderr
