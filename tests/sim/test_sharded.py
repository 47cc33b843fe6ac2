"""Programs over eight chips of kinds that people have, and the memory that libtpu 0.0.52 gives them, compiled ahead of time for v5e:2x4
and v5p:2x2x2 (tests/sim/oracle/sharded.csv): Megatron's sequence parallelism, decoders with cut caches, pipelines, experts, tables, a U-Net, ZeRO, adapters,
heads for sequence by all-to-all, a diffusion transformer, state spaces."""
import csv
import io
import json
import os
import pathlib
import subprocess
import tarfile

import pytest

ORACLE = pathlib.Path(__file__).resolve().parent / "oracle"
WEFT = pathlib.Path(os.environ["WEFT_BUILD"]) / "weft"

# What is still further from libtpu than 10 %, and by how much at most.
FAR = {"moe_jit": 0.14, "dlrm": 0.72, "gpt_tp": 0.19, "ring": 0.26,
       "pipe_tp": 0.12, "dit": 0.14, "ssm": 0.28}


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sharded")
    with tarfile.open(fileobj=io.BytesIO((ORACLE / "sharded.tar.xz").read_bytes())) as t:
        for m in t.getmembers():
            if m.isfile():
                (folder / pathlib.Path(m.name).name).write_bytes(t.extractfile(m).read())
    out = {}
    for r in csv.DictReader(open(ORACLE / "sharded.csv")):
        p = subprocess.run([WEFT, "estimate", folder / (r["program"] + ".mlir"), "--chip", r["chip"], "--json"], capture_output=True, text=True,
                           timeout=300, check=True)
        d = json.loads(p.stdout)
        assert abs(d["argument_bytes"] / float(r["arg_bytes"]) - 1) < 0.02, r["program"]
        out[r["program"].removeprefix("sharded_")] = d["peak_bytes"] / float(r["peak_bytes"]) - 1
    return out


def test_peaks_are_libtpus(errors):
    far = {p: round(e, 3) for p, e in errors.items() if abs(e) > FAR.get(p, 0.1)}
    assert not far, far


def test_caches_that_a_scan_gives_back(errors):
    """What a loop still reads cannot be written over: the new caches lie beside the old ones until they are copied."""
    assert abs(errors["decode"]) < 0.05


def test_one_sharding_of_a_mask_and_of_what_is_spread(errors):
    """A mask is made again for each reader; one row spread twice is one array, and is exchanged whole."""
    assert abs(errors["seqpar"]) < 0.07
