"""A plugin that cannot be loaded: whoever asks for weft reads which library is missing, nobody else reads anything."""
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import ROOT

PROGRAM = "import jax; print(jax.numpy.ones(2).sum())"


def run(plugin, platforms):
    env = dict(os.environ, PYTHONPATH=str(ROOT / "python"), WEFT_PLUGIN=str(plugin))
    env.pop("JAX_PLATFORMS", None)
    if platforms:
        env["JAX_PLATFORMS"] = platforms
    return subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=120)


@pytest.fixture
def needy(tmp_path):
    """A library that needs another one, which is gone."""
    (tmp_path / "empty.c").write_text("int gone(void) { return 1; }\n")
    (tmp_path / "plugin.c").write_text("int gone(void);\nint GetPjrtApi(void) { return gone(); }\n")
    gone, plugin = tmp_path / "libgone.so.7", tmp_path / "plugin.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libgone.so.7", "-o", gone, tmp_path / "empty.c"], check=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", plugin, tmp_path / "plugin.c", gone], check=True)
    gone.unlink()
    return plugin


def test_asked(needy):
    r = run(needy, "weft")
    assert r.returncode
    said = [line for line in r.stderr.splitlines() if line.startswith("RuntimeError")]
    assert "libgone.so.7" in said[-1] and str(needy) in said[-1], r.stderr


def test_not_there(tmp_path):
    r = run(tmp_path / "nothing.so", "weft")
    assert r.returncode and f"no library {tmp_path / 'nothing.so'}" in r.stderr


@pytest.mark.parametrize("platforms", [None, "cpu"])
def test_not_asked(needy, platforms):
    r = run(needy, platforms)
    assert (r.returncode, r.stdout) == (0, "2.0\n"), r.stderr
    assert "Traceback" not in r.stderr and "weft" not in r.stderr
