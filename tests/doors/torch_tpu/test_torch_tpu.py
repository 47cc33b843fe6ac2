"""TorchTPU's programs on weft against PyTorch on this CPU. WEFT_DEVICE is all that is set: the hook of an installed package sees it."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

if sys.version_info < (3, 11):
    pytest.skip("torch_tpu needs Python 3.11", allow_module_level=True)
pytest.importorskip("torch_tpu")

from conftest import BUILD  # noqa: E402

HERE = pathlib.Path(__file__).parent
CASES = re.findall(r"^@case\ndef (\w+)", (HERE / "programs.py").read_text(), re.M)


def run(device, *args, **more):
    """Runs a program; returns what it printed last, as JSON."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "TPU_", "KERAS_"))}
    env.update(WEFT_DEVICE=device, WEFT_PLUGIN=str(BUILD / "libpjrt_weft.so"), **more)
    r = subprocess.run([sys.executable, *args], env=env, capture_output=True, text=True, timeout=900, cwd=HERE)
    assert r.returncode == 0, r.stderr[-4000:]
    return json.loads(r.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def on_cpu():
    return run("cpu", "programs.py")


def close(pair, tolerance):
    assert not isinstance(pair, str), pair
    np.testing.assert_allclose(*pair, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_program(on_cpu, name):
    close(on_cpu[name], 2e-5)


def test_virtual_tpu():
    """In its precision, with its name and memory."""
    close(run("tpu-v5e", "programs.py", "adamw")["adamw"], 2e-2)
    name, gib = run("tpu-v5e", "-c", "import json, torch, torch_tpu; torch.ones(1, device='tpu')\n"
                    "print(json.dumps([torch.tpu.get_device_name(), torch.tpu.get_device_properties().total_memory >> 30]))")
    assert (name, gib) == ("TPU v5e", 16)


def test_keras():
    """Keras on PyTorch: on this CPU PyTorch alone is the truth."""
    if not importlib.util.find_spec("keras"):
        pytest.skip("Keras is not installed")
    got = run("cpu", "keras_torch.py", KERAS_BACKEND="torch", KERAS_TORCH_DEVICE="tpu")
    want = run("", "keras_torch.py", KERAS_BACKEND="torch", KERAS_TORCH_DEVICE="cpu", TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert (got["device"], want["device"]) == ("tpu", "cpu")
    for name, numbers in want["numbers"].items():
        close((got["numbers"][name], numbers), 2e-5)
