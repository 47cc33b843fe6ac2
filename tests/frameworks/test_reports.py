"""What users ask JAX about a program and a device: costs before and after compiling, Ctrl-C, arrays that no memory holds."""
import json

import pytest

from test_training import python

COSTS = """
import json, jax, jax.numpy as jnp
step = jax.jit(lambda a, b: jnp.tanh(a @ b).sum())
a = jnp.ones((512, 512))
lowered = step.lower(a, a)
print(json.dumps([lowered.cost_analysis(), lowered.compile().cost_analysis()]))
"""


def test_costs():
    """XLA's own counts; those of a compiled program are of what a device does, so they may be a little more."""
    want, _ = json.loads(python("cpu", "-c", COSTS))
    for device in "cpu:2", "tpu-v5e", "H100":
        lowered, compiled = json.loads(python("weft", "-c", COSTS, device=device))
        assert lowered == want
        assert compiled["flops"] == pytest.approx(want["flops"], rel=0.01)
        assert compiled["bytes accessed"] >= 2 * 512 * 512 * 4
        assert ("optimal_seconds" in compiled) == (not device.startswith("cpu"))


CLOCK = """
import json, jax, jax.numpy as jnp, weft
step = jax.jit(lambda a: jnp.tanh(a @ a))
a = jnp.ones((512, 512))
compiled = step.lower(a).compile()
began = weft.virtual_time()
for _ in range(10):
    a = compiled(a)
jax.block_until_ready(a)
took = weft.virtual_time() - began
print(json.dumps([took, weft.step_time(compiled) if "CPU" not in jax.devices()[0].device_kind.upper() else None]))
"""


def test_a_step_takes_what_the_chip_takes():
    """However long this machine computes the chip's numbers."""
    took, step = json.loads(python("weft", "-c", CLOCK, device="tpu-v5e"))
    assert took == pytest.approx(10 * step, rel=1e-6)
    took, _ = json.loads(python("weft", "-c", CLOCK))
    assert took > 0


TURNS = """
import json, jax, jax.numpy as jnp, weft
until = jax.jit(lambda x, n: jax.lax.while_loop(lambda s: s[1] < n, lambda s: (jnp.tanh(s[0] @ s[0]), s[1] + 1), (x, 0.))[0])
told = jax.jit(lambda x: jax.lax.fori_loop(0, 30, lambda i, x: jnp.tanh(x @ x), x))
x = jnp.ones((256, 256))
def took(f, *args):
    jax.block_until_ready(f(*args))
    began = weft.virtual_time()
    jax.block_until_ready(f(*args))
    return weft.virtual_time() - began
print(json.dumps([took(until, x, 30.), took(told, x)]))
"""


def test_a_loop_of_unknown_length_takes_its_turns():
    for device in "tpu-v5e", "A100-80GB":
        until, told = json.loads(python("weft", "-c", TURNS, device=device))
        assert until == pytest.approx(told, rel=0.01)


SLICES = """
import json, jax, jax.numpy as jnp, numpy as np, weft
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
def seconds(slices, shape, spec, arrange=lambda d: d):
    devices = np.array(topologies.get_topology_desc("v5e:4x4", "weft", num_slices=slices).devices)
    mesh = Mesh(arrange(devices).reshape(shape), ("between", "inside"))
    add = jax.jit(lambda x: x.sum(0), in_shardings=NamedSharding(mesh, spec), out_shardings=NamedSharding(mesh, P()))
    return weft.step_time(add.lower(jax.ShapeDtypeStruct((32, 1 << 26), jnp.float32)).compile())
mixed = lambda d: np.concatenate([d[:8], d[16:24], d[8:16], d[24:]])
print(json.dumps([seconds(1, (1, 16), P("inside")), seconds(2, (2, 16), P("inside")), seconds(2, (2, 16), P("between")),
                  seconds(2, (2, 16), P("inside"), mixed)]))
"""


def test_what_slices_exchange_takes_the_data_centres_network():
    """256 MiB are added up: over the torus of a slice, the same in each of two, between the two at 3.1 GB/s a chip, and over a mesh
    whose rows lie half in each."""
    one, inside, between, half = json.loads(python("weft", "-c", SLICES, device="tpu-v5e"))
    assert inside == pytest.approx(one, rel=1e-6)
    assert between > 256 * 2**20 / 3.125e9
    assert inside < half < between


INTERRUPTED = """
import os, signal, threading, jax, jax.numpy as jnp
long = jax.jit(lambda a: jax.lax.fori_loop(0, 10**8, lambda i, x: jnp.tanh(x @ x), a), out_shardings=OUT)
compiled = long.lower(jax.device_put(jnp.ones((256, 256)), OUT)).compile()
a = jax.device_put(jnp.ones((256, 256)), OUT)
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    compiled(a).block_until_ready()
except KeyboardInterrupt:
    print("stopped")
"""
ONE = "import jax\nOUT = jax.sharding.SingleDeviceSharding(jax.devices()[0])\n"
SPREAD = "import jax\nOUT = jax.NamedSharding(jax.make_mesh((2,), ('x',)), jax.P('x'))\n"


@pytest.mark.parametrize("device, where", [("cpu", ONE), ("cpu:2", SPREAD), ("tpu-v3-2", SPREAD)])
def test_control_c(device, where):
    """A computation of minutes is left at once, on one device and on several."""
    assert python("weft", "-c", where + INTERRUPTED, device=device) == "stopped"


HUGE = """
import time, jax, jax.numpy as jnp
begin = time.monotonic()
try:
    jnp.ones((256, 2**30)).block_until_ready()
except Exception as error:
    assert time.monotonic() - begin < 20
    print(str(error).replace(chr(10), " "))
"""


@pytest.mark.parametrize("device", ["tpu-v5p-8", "H100"])
def test_no_chip_is_that_large(device):
    assert "RESOURCE_EXHAUSTED" in (said := python("weft", "-c", HUGE, device=device))
    assert "' needs " in said and "hint:" in said
