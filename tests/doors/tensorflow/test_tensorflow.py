"""TensorFlow programs on weft against TensorFlow itself on this CPU."""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from conftest import BUILD  # noqa: E402

HERE = pathlib.Path(__file__).parent


def run(*args, device=None, timeout=900, **env):
    """Runs a Python program in this environment; returns what it printed last, as JSON. device: WEFT_DEVICE; None: TensorFlow itself."""
    full = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "KERAS_", "JAX_"))}
    full.update(TF_CPP_MIN_LOG_LEVEL="3", **env)
    if device:
        full.update(WEFT_DEVICE=device, WEFT_PLUGIN=str(BUILD / "libpjrt_weft.so"))
    r = subprocess.run([sys.executable, *map(str, args)], env=full, capture_output=True, text=True, timeout=timeout, cwd=HERE)
    assert r.returncode == 0, r.stderr[-4000:]
    return json.loads(r.stdout.splitlines()[-1])


def close(got, want, tolerance):
    assert got.keys() == want.keys()
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.fixture(scope="module")
def truth():
    """The program on one replica of TensorFlow's own: eight that divide its batches evenly compute the same."""
    return run("truth.py", "seed.py", 1)


@pytest.mark.parametrize("device, tolerance", [("cpu:8", 1e-5), ("tpu-v3-8", 2e-2)])
def test_seed(truth, device, tolerance):
    """As it is written: the hook of an installed package sees WEFT_DEVICE. On the virtual TPU with its precision."""
    got = run("seed.py", device=device)
    assert (got.pop("cores"), got.pop("replicas")) == (8, 8)
    close(got, {k: v for k, v in truth.items() if k not in ("cores", "replicas")}, tolerance)
