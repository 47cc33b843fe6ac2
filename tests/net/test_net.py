"""Exchanges over GPUs against what others measured, on the third of the rows that no coefficient saw."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEFT = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")) / "weft"


def weft(*words, **more):
    return subprocess.run([WEFT, *words], capture_output=True, text=True, **more)


def test_measured():
    p = subprocess.run([sys.executable, ROOT / "tools/fit_net.py", "--check"], capture_output=True, text=True)
    assert p.returncode == 0, p.stdout + p.stderr


def test_two_servers():
    """A public log of two a3-megagpu-8g: 1 GiB all-reduced over 16 H100 in 6.76 ms."""
    p = weft("kernel", "-", input="H100:16@a3-mega all-reduce 1GiB f32\n")
    assert abs(float(p.stdout) / 6760 - 1) < 0.15


def test_words():
    p = weft("kernel", "H100:16@a3-mega", "all-reduce", "1GiB")
    assert p.returncode == 0 and "NVLS tree" in p.stdout and "between" in p.stdout
    for words in (["H100:8", "all-reduc", "1"], ["H100:8", "all-reduce", "x"], ["H100:8@nowhere", "send", "1"], ["H100:8", "send", "1", "q8"]):
        p = weft("kernel", *words)
        assert p.returncode == 1 and "Traceback" not in p.stderr and p.stderr.strip()


def test_estimate_asks_the_network(tmp_path):
    """A program of one collective takes what the network takes."""
    text = """module attributes {mhlo.num_replicas = 8 : i32} {
func.func @main(%x: tensor<33554432xbf16>) -> tensor<33554432xbf16> {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
    %1 = stablehlo.add %a, %b : tensor<bf16>
    stablehlo.return %1 : tensor<bf16>
  }) {replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>} : (tensor<33554432xbf16>) -> tensor<33554432xbf16>
  return %0 : tensor<33554432xbf16>
}}"""
    (tmp_path / "p.mlir").write_text(text)
    import json
    report = json.loads(weft("estimate", str(tmp_path / "p.mlir"), "--chip", "H100:8", "--json").stdout)
    alone = float(weft("kernel", "-", input="H100:8 all-reduce 67108864 bf16\n").stdout) * 1e-6
    assert abs(report["network_s"] / alone - 1) < 0.05
