"""A chip of one's own, by a file in WEFT_DATA alone: what its file lacks is said, and what it says counts."""
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WEFT = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")) / "weft"
PROGRAM = """func.func @main(%a: tensor<4096x4096xf32>, %b: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %0 = stablehlo.add %a, %b : tensor<4096x4096xf32>
  %1 = stablehlo.multiply %0, %b : tensor<4096x4096xf32>
  return %1 : tensor<4096x4096xf32>
}
"""


def weft(folder, *args):
    return subprocess.run([WEFT, *map(str, args)], capture_output=True, text=True, check=True, env=dict(os.environ, WEFT_DATA=str(folder))).stdout


def own_chip(folder, *edits):
    """A copy of v6e without its coefficients, called tpu-v9x."""
    text = (ROOT / "data/chips/tpu-v6e.chip").read_text()
    text = re.sub(r"^(fit\.).*\n", "", text, flags=re.M)
    for pattern, by in ((r"^name .*", "name = tpu-v9x  # test"), (r"^aliases .*", "aliases = v9x, TPU v9x  # test"), (r"^device_kind .*\n", ""), *edits):
        text, n = re.subn(pattern, by, text, flags=re.M)
        assert n == 1, pattern
    (folder / "chips").mkdir(exist_ok=True)
    (folder / "chips/tpu-v9x.chip").write_text(text)


def test_a_new_file_is_looked_through(tmp_path):
    own_chip(tmp_path, (r"^mxu_macs .*\n", ""), (r"^ici_hop ", "ici_hpo "))
    text = weft(tmp_path, "chips", "v9x")
    assert re.search(r"^missing: mxu_macs, ici_hop, which", text, re.M)
    assert re.search(r"^unknown: ici_hpo, which", text, re.M)
    assert "no coefficient is fitted" in text
    assert "no coefficient" not in weft(tmp_path, "chips", "tpu-v6e")


def test_bandwidth_counts_without_coefficients(tmp_path):
    (tmp_path / "add.mlir").write_text(PROGRAM)
    found = []
    for gigabytes in (1638, 3276):
        own_chip(tmp_path, (r"^hbm_bandwidth .*", f"hbm_bandwidth = {gigabytes} GB/s  # test"))
        found.append(json.loads(weft(tmp_path, "estimate", tmp_path / "add.mlir", "--chip", "v9x", "--json"))["time_s"])
    fitted = json.loads(weft(tmp_path, "estimate", tmp_path / "add.mlir", "--chip", "tpu-v6e", "--json"))["time_s"]
    assert abs(found[0] / fitted - 1) < 0.1
    assert 1.7 < found[0] / found[1] < 2
    for chip, said in (("v9x", True), ("tpu-v6e", False)):
        assert ("no coefficients are fitted" in weft(tmp_path, "estimate", tmp_path / "add.mlir", "--chip", chip)) == said


def test_offers_of_a_new_chip(tmp_path):
    own_chip(tmp_path)
    (tmp_path / "prices").mkdir()
    head = (ROOT / "data/prices/gcp.csv").read_text().split("\n", 1)[0]
    (tmp_path / "prices/own.csv").write_text(head + "\nown,tpu-v9x-8,TPU v9x,8,8,180,1440,40,10,here,2026-11-28,test,\n")
    assert "5.000*" in weft(tmp_path, "chips", "v9x", "--prices")
