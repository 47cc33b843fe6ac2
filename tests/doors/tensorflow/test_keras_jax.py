"""Keras on its JAX backend, and all frameworks in one process."""
import os
import subprocess
import sys

import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("jax")

from conftest import BUILD, ROOT  # noqa: E402
from test_tensorflow import beside, close, run  # noqa: E402


def test_distributions():
    """DataParallel and ModelParallel on eight devices against JAX's own eight, from the same program."""
    env = {"KERAS_BACKEND": "jax", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    want, got = beside(lambda: run("keras_jax.py", **env, JAX_PLATFORMS="cpu"), lambda: run("keras_jax.py", **env, JAX_PLATFORMS="weft", device="cpu:8"))
    close(got, want, 1e-4)


def test_beside():
    """The plugin with TensorFlow and JAX (and PyTorch, where it is) in one process, imported in every order."""
    env = dict(os.environ, WEFT_PLUGIN=str(BUILD / "libpjrt_weft.so"))
    r = subprocess.run([sys.executable, ROOT / "tests/install/beside.py"], env=env, capture_output=True, text=True)
    assert r.returncode == 0, r.stdout
