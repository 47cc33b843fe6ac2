"""Programs with shardings in one process: computed in parts they are what they are as a whole; a device holds its shard; pipelines and
experts as on JAX's CPU backend, where that has the operation."""
import os
import subprocess
import sys

import numpy as np
import pytest

from test_training import BUILD, ROOT, run


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_numbers(devices):
    """All kinds of operations under drawn shardings; more of them: programs/partitioned.py SEED COUNT."""
    got = run("weft", "partitioned.py", str(devices), "1", device=f"cpu:{devices}")
    assert not got["bad"], "\n".join(got["bad"])
    assert got["cut"] >= got["ran"] // 2  # the others were drawn whole


def test_memory(monkeypatch):
    """Of a fully sharded step a device holds an eighth, and while it runs the layers' weights and a gradient whole; all devices together
    take no more of this process than the whole program does."""
    got = run("weft", "partitioned_memory.py", device="cpu:8")
    monkeypatch.setenv("WEFT_PARTITION", "off")
    want = run("weft", "partitioned_memory.py", device="cpu:8")
    layer = 512 * 512 * 4
    assert got["value"] == pytest.approx(want["value"], rel=1e-5)
    assert got["args"] == want["args"] == (6 * layer + 1024 * 512 * 4) / 8
    assert got["temp"] <= want["temp"] / 8 + (6 + 3) * layer
    assert got["peak"] <= want["peak"] / 8 + (6 + 4) * layer
    assert got["process"] <= 1.25 * want["process"]


def test_pipelines_and_experts():
    want = run("cpu", "pipeline_experts.py", flags="--xla_force_host_platform_device_count=8")
    got = run("weft", "pipeline_experts.py", device="cpu:8")
    assert got.keys() == want.keys()
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=2e-4, atol=2e-4 if "gradient" in name else 1e-5, err_msg=name)


def test_shard_map_over_some_axes():
    """The pipeline's temporaries are those of one device, its free axes' share."""
    want = run("cpu", "partly_manual.py", flags="--xla_force_host_platform_device_count=8")
    got = run("weft", "partly_manual.py", device="cpu:8")
    assert got.keys() == want.keys()
    assert 0 < got.pop("temp") < 1.3 * want.pop("temp")
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=2e-4, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("partition", ["", "always", "off"])
def test_meshes_of_the_same_devices(partition, monkeypatch):
    """XLA's CPU backend has them, but JAX does not find its shardings among the meshes' axes: against numpy."""
    monkeypatch.setenv("WEFT_PARTITION", partition)
    assert run("weft", "meshes.py", device="cpu:8") == [["z", "P('z',)"], ["a", "b", "P('b', 'a')"], ["a", "b", "P(None, 'b')"],
                                                        ["z", "P()"]]


def test_prints_of_parts():
    """jax.debug.print(partitioned=True): each device's parts."""
    want = run("cpu", "partitioned_prints.py", flags="--xla_force_host_platform_device_count=4")
    assert len(want["parts"]) == 9  # four devices, two calls, and what is before the first
    assert run("weft", "partitioned_prints.py", device="cpu:4") == want


def test_unsummed():
    """Arrays with unreduced axes: each device's terms are XLA's, and are summed as often and as late."""
    want = run("cpu", "unsummed.py", flags="--xla_force_host_platform_device_count=4")
    got = run("weft", "unsummed.py", device="cpu:4")
    assert got.keys() == want.keys()
    for name in want:
        assert got[name] == want[name], name


@pytest.mark.parametrize("device", ["cpu:4", "tpu-v5e:4"])
def test_values_that_differ(device):
    """Each device keeps its own value where the program wrongly says that they are the same, as under XLA."""
    assert run("weft", "differ.py", device=device) == run("cpu", "differ.py", flags="--xla_force_host_platform_device_count=4")


def test_devices_that_go_different_ways():
    """Branches and turns of loops that differ; callbacks that wait for those of other devices, also where one raises."""
    want = run("cpu", "apart.py", flags="--xla_force_host_platform_device_count=4")
    got = run("weft", "apart.py", device="cpu:4")
    assert got.pop("met") and got.pop("raised")
    assert got.keys() == want.keys()
    for name in want:
        for ours, theirs in zip(got[name], want[name], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=name)


def test_why_whole():
    """WEFT_VERBOSE says which programs are computed whole."""
    program = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("x",))
a = jax.device_put(np.ones((8, 64), np.float32), NamedSharding(mesh, P("x")))
jax.jit(lambda a: jnp.sin(a) * 2).lower(a).compile()
jax.jit(lambda a: jax.debug.callback(print, a.sum()) or a).lower(a).compile()
"""
    env = dict(os.environ, JAX_PLATFORMS="weft", WEFT_DEVICE="cpu:8", WEFT_VERBOSE="2", WEFT_PLUGIN=str(BUILD / "libpjrt_weft.so"),
               PYTHONPATH=os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]))
    said = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=300)
    assert said.returncode == 0, said.stderr
    lines = [line for line in said.stderr.splitlines() if line.startswith("weft,partition,")]
    assert lines[-2].endswith('"in parts"')
    assert lines[-1].endswith("\"computed whole: it calls its caller's functions\"")
