"""The JAX package: linear algebra, callbacks, donation, saving, as on JAX's CPU backend."""
import concurrent.futures
import socket

import numpy as np
import pytest

from test_training import ROOT, python, run


def compare(got, want, path):
    if isinstance(want, dict):
        assert got.keys() == want.keys()
        for key in want:
            compare(got[key], want[key], f"{path}/{key}")
    elif isinstance(want, list) and want and isinstance(want[0], list):
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            compare(g, w, f"{path}[{i}]")
    elif isinstance(want, list) and want and isinstance(want[0], float):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5, err_msg=path)
    else:
        assert got == want, path


def test_plugin():
    compare(run("weft", "plugin.py"), run("cpu", "plugin.py"), "")


def test_the_cpu_is_asked_for_first():
    """Before anything else: the question makes JAX look for backends, of which none is called cpu."""
    assert python("weft", "-c", "import jax; print(jax.devices('cpu')[0].platform)") == "weft"


def test_random_calls():
    """More of them: tests/frameworks/random_calls.py."""
    assert python("weft,cpu", str(ROOT / "tests" / "frameworks" / "random_calls.py"), "--count", "100") == "100 calls, 0 wrong"


def test_a_library_that_knows_the_cpu_only():
    """Its primitive has a rule for "cpu" and none for every platform: weft takes that."""
    assert python("weft", "-c", """
import jax, jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import mlir
twice = Primitive("library_twice")
twice.def_abstract_eval(lambda x: x)
mlir.register_lowering(twice, mlir.lower_fun(lambda x: x + x, multiple_results=False), platform="cpu")
print(jax.jit(twice.bind)(jnp.ones(2)))""") == "[2. 2.]"


def test_products_with_scales_of_blocks():
    """jax.nn.scaled_matmul, which JAX has for cuDNN alone: of numbers in 8 bits, a scale for each 32 of them, against numpy."""
    assert python("weft", "-c", """
import jax, jax.numpy as jnp, ml_dtypes, numpy as np
g = np.random.default_rng(0)
a, b = (g.standard_normal((2, n, 64)).astype(ml_dtypes.float8_e4m3fn) for n in (5, 7))
s, t = (np.exp2(g.integers(-3, 4, (2, n, 2))).astype(ml_dtypes.float8_e8m0fnu) for n in (5, 7))
whole = lambda a, s: a.astype(np.float64) * np.repeat(s.astype(np.float64), 32, -1)
got = jax.nn.scaled_matmul(a, b, s, t, preferred_element_type=jnp.float32)
np.testing.assert_allclose(got, np.einsum("bmk,bnk->bmn", whole(a, s), whole(b, t)), rtol=1e-5, atol=1e-3)
print(got.shape, got.dtype)""") == "(2, 5, 7) float32"


def test_callbacks_that_write_in_place():
    assert python("weft", "-c", """
import jax, numpy as np
from jax.experimental.buffer_callback import buffer_callback
def double(ctx, out, x):
    np.asarray(out)[...] = 2 * np.from_dlpack(x)
f = buffer_callback(double, jax.ShapeDtypeStruct((3,), np.float32), vmap_method="sequential")
print(jax.jit(jax.vmap(f))(np.arange(6, dtype=np.float32).reshape(2, 3)).tolist())""") == "[[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]"


def test_callbacks_outside_of_the_callers_mesh():
    """A callback may compute with JAX on its own device, whatever mesh jax.set_mesh has set where the program was called."""
    assert python("weft", "-c", """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, PartitionSpec as P
jax.set_mesh(jax.make_mesh((2,), ("x",), axis_types=(AxisType.Explicit,)))
f = jax.shard_map(lambda x: jax.pure_callback(lambda a: jnp.asarray(a) * 2, x, x), in_specs=P("x"), out_specs=P("x"))
print(np.asarray(f(jax.device_put(np.arange(4, dtype=np.float32), P("x")))), jax.sharding.get_abstract_mesh().axis_names)""",
                  device="cpu:2") == "[0. 2. 4. 6.] ('x',)"


KEPT = """
import sys, jax
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
found = []
jax.monitoring.register_event_listener(lambda name, **_: found.append(name) if name.endswith("/cache_hits") else None)
print(float(jax.jit(lambda x: x * x + 1)(3.0)), len(found) > 0)
"""


def test_the_compilation_cache_of_jax(tmp_path):
    assert [python("weft", "-c", KEPT, str(tmp_path)) for _ in range(2)] == ["10.0 False", "10.0 True"]


PROCESS = """
import sys, jax
jax.distributed.initialize("localhost:" + sys.argv[1], num_processes=2, process_id=int(sys.argv[2]))
print("computes on", jax.devices()[0].platform)
"""


def test_several_processes():
    """Programs that do not ask for weft never meet it; those that do: test_processes.py."""
    with socket.socket() as s:
        s.bind(("localhost", 0))
        port = str(s.getsockname()[1])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda i: python("", "-c", PROCESS, port, str(i)), range(2)))
    assert said == ["computes on cpu"] * 2


@pytest.mark.parametrize("device", ["cpu", "tpu-v5e"])
def test_constants_of_one_value_cost_one(device):
    """Some twenty constants of the array's shape each, which together are 2 GiB; compiled for 2 G elements, at once."""
    drawn = python("weft", "-c", """
import time, jax, jax.numpy as jnp
mean = jax.jit(lambda k, n: jnp.abs(jax.random.normal(k, n)).mean(), static_argnums=1)
begin = time.monotonic()
for f in (jax.lax.erf_inv, lambda x: jax.nn.gelu(x, approximate=False), jax.lax.lgamma):
    jax.jit(lambda x: f(x).sum()).lower(jax.ShapeDtypeStruct((32, 8192, 8192), jnp.float32)).compile()
assert time.monotonic() - begin < 10
print(float(mean(jax.random.key(0), (5000, 5000))))""", device=device)
    np.testing.assert_allclose(float(drawn), (2 / np.pi) ** 0.5, rtol=1e-3)


def test_who_only_asks_for_a_module_changes_nothing(tmp_path):
    """The hook of TensorFlow and TorchTPU does its part when the module is imported, also after somebody looked whether it is there."""
    (tmp_path / "some_framework.py").write_text("order.append('executed')")
    assert python("", "-c", f"""
import builtins, importlib.util, sys
from weft import hook
builtins.order = []
sys.path.insert(0, {str(tmp_path)!r})
hook._AROUND["some_framework"] = (lambda m: order.append("before"), lambda m: order.append("after"))
sys.meta_path.insert(0, hook._Finder())
assert importlib.util.find_spec("some_framework") and importlib.util.find_spec("some_framework") and not order
import some_framework
importlib.reload(some_framework)
print(*order)""") == "before executed after executed"
