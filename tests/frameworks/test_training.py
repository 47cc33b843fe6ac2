"""Unmodified JAX, Flax and Optax programs reach the same numbers on weft as on JAX's CPU backend."""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from conftest import BUILD, ROOT  # noqa: E402

PROGRAMS = pathlib.Path(__file__).parent / "programs"


def python(platform, *args, device="cpu", flags=""):
    """The last line that Python, called with these arguments, prints."""
    env = dict(os.environ, JAX_PLATFORMS=platform, WEFT_DEVICE=device, XLA_FLAGS=flags,
               WEFT_PLUGIN=str(BUILD / "libpjrt_weft.so"),
               PYTHONPATH=os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]))
    r = subprocess.run([sys.executable, *args], env=env, capture_output=True, text=True, timeout=600)
    assert r.returncode == 0, r.stderr[-3000:]
    return r.stdout.strip().splitlines()[-1]


def run(platform, program, *args, **kwargs):
    return json.loads(python(platform, str(PROGRAMS / program), *args, **kwargs))


@pytest.mark.parametrize("model", ["cnn", "transformer", "rnn", "remat_scan_bf16"])
def test_flax_optax(model):
    want, got = run("cpu", "flax_optax.py", model, "8"), run("weft", "flax_optax.py", model, "8")
    assert want[-1] < want[0]
    np.testing.assert_allclose(got, want, rtol=2e-3 if "bf16" in model else 5e-4)


def test_eight_devices():
    want = run("cpu", "sharded.py", flags="--xla_force_host_platform_device_count=8")
    got = run("weft", "sharded.py", device="cpu:8")
    assert got.keys() == want.keys()
    for key in want:
        np.testing.assert_allclose(got[key], want[key], rtol=1e-5, err_msg=key)
