"""What every version of JAX must be able to do, as small programs: jax_versions.py runs them on weft and on JAX's own CPU
backend, each with eight devices, and compares what they return.

    JAX_PLATFORMS=weft WEFT_DEVICE=cpu:8 python jax_checks.py OUT.jsonl [CHECK ...]

A line of OUT for each check: {"check": name, "result": [...]} or {"check": name, "error": text}. Written for JAX 0.4.35 and
later: where a name moved, both places are tried.
"""
import contextlib
import inspect
import io
import json
import os
import sys
import tempfile
import traceback

import numpy as np

import jax
import jax.numpy as jnp
from jax import lax

CHECKS = {}


def check(f):
    CHECKS[f.__name__] = f
    return f


def sample(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def mesh(*names):
    from jax.sharding import Mesh
    shape = (8,) if len(names) == 1 else (4, 2)
    return Mesh(np.array(jax.devices()[:8]).reshape(shape), names)


def spread(m, *axes):
    from jax.sharding import NamedSharding, PartitionSpec
    return NamedSharding(m, PartitionSpec(*axes))


def shard_map(f, m, in_specs, out_specs):
    if hasattr(jax, "shard_map"):
        return jax.shard_map(f, mesh=m, in_specs=in_specs, out_specs=out_specs)
    from jax.experimental.shard_map import shard_map as old
    return old(f, mesh=m, in_specs=in_specs, out_specs=out_specs)


@check
def jit():
    return jax.jit(lambda x, y: jnp.tanh(x @ y).sum(0))(sample(8, 4), sample(4, 5))


@check
def grad():
    def loss(w, x):
        return jnp.mean(jax.nn.gelu(x @ w["a"] + w["b"]) ** 2)
    return jax.jit(jax.value_and_grad(loss))({"a": sample(4, 5), "b": sample(5)}, sample(8, 4))


@check
def vmap():
    return jax.jit(jax.vmap(lambda a, b: jnp.convolve(a, b), in_axes=(0, None)))(sample(3, 9), sample(4))


@check
def loops():
    def body(carry, x):
        carry = lax.cond(x[0] > 0, lambda c: c * 0.5 + x, lambda c: c - x, carry)
        return carry, carry.sum()
    total, each = jax.jit(lambda xs: lax.scan(body, jnp.zeros(4), xs))(sample(10, 4))
    n = jax.jit(lambda x: lax.while_loop(lambda s: s[0] < 100, lambda s: (s[0] * 1.5, s[1] + 1), (x, 0)))(1.0)
    return total, each, n


@check
def remat_and_custom_gradient():
    @jax.custom_vjp
    def clip(x):
        return x
    clip.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))
    f = jax.checkpoint(lambda x: jnp.sin(clip(jnp.cos(x))).sum())
    return jax.jit(jax.grad(f))(sample(6)), jax.jit(jax.hessian(lambda x: (x ** 3).sum()))(sample(3))


@check
def random():
    key = jax.random.key(7) if hasattr(jax.random, "key") else jax.random.PRNGKey(7)
    a, b, c = jax.random.split(key, 3)
    return (jax.random.normal(a, (4, 5)), jax.random.permutation(b, 10), jax.random.categorical(c, jnp.zeros((6, 3))),
            jax.random.gamma(a, 2.0, (5,)), jax.random.bits(b, (3,)))


@check
def linalg():
    a = sample(6, 6)
    spd = a @ a.T + 6 * np.eye(6, dtype=np.float32)
    w, v = jnp.linalg.eigh(spd)
    q, r = jnp.linalg.qr(a)
    return (jnp.linalg.cholesky(spd), jnp.linalg.solve(spd, a), w, jnp.abs(v), jnp.abs(q @ r),
            jnp.linalg.svd(a, compute_uv=False), jnp.linalg.det(a), jnp.linalg.inv(spd),
            jax.scipy.linalg.expm(a * 0.1))


@check
def fft():
    return jnp.fft.rfft(sample(4, 16)).real, jnp.abs(jnp.fft.fft2(sample(4, 6)))


@check
def convolution():
    x, k = sample(2, 8, 8, 3), sample(3, 3, 3, 4)
    def f(k):
        y = lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()
    return jax.jit(jax.value_and_grad(f))(k)


@check
def sorting_and_indexing():
    x = sample(5, 7)
    return (jnp.sort(x), jnp.argsort(x, axis=0), lax.top_k(x, 3), jnp.asarray(x).at[jnp.array([0, 3, 3])].add(1.0),
            jnp.unique(jnp.array([3, 1, 3]), size=2), jnp.searchsorted(jnp.sort(x[0]), x[1]))


@check
def small_types():
    x = sample(8, 8)
    with jax.default_matmul_precision("float32"):
        half = (jnp.asarray(x, jnp.bfloat16) @ jnp.asarray(x, jnp.bfloat16)).astype(jnp.float32)
    return (half, jnp.asarray(x, jnp.float16).astype(jnp.float32), jnp.asarray(x, jnp.float8_e4m3fn).astype(jnp.float32),
            jnp.asarray(x * 20, jnp.int8).astype(jnp.int32).sum())


@check
def double_precision():
    if hasattr(jax, "enable_x64"):
        wide = jax.enable_x64(True)
    else:
        from jax.experimental import enable_x64
        wide = enable_x64()
    with wide:
        return jax.jit(lambda x: jnp.linalg.norm(x) + jnp.sum(x ** 2))(np.arange(9, dtype=np.float64))


@check
def donation():
    x = jnp.arange(16.0)
    y = jax.jit(lambda v: v + 1, donate_argnums=0)(x)
    assert x.is_deleted(), "the donated array is still there"
    return y


@check
def pmap():
    x = sample(8, 4)
    return (jax.pmap(lambda v: lax.psum(v, "i"), axis_name="i")(x),
            jax.pmap(lambda v: lax.ppermute(v, "i", [(k, (k + 1) % 8) for k in range(8)]), axis_name="i")(x))


@check
def shardings():
    m = mesh("x", "y")
    a = jax.device_put(sample(8, 16), spread(m, "x", "y"))
    b = jax.device_put(sample(16, 4), spread(m, "y", None))
    f = jax.jit(lambda a, b: jnp.tanh(a @ b), in_shardings=(spread(m, "x", "y"), spread(m, "y", None)),
                out_shardings=spread(m, "x", None))
    y = f(a, b)
    assert len(y.sharding.device_set) == 8 and y.addressable_shards[0].data.shape == (2, 4), y.sharding
    return y


@check
def shardings_found():
    """Those of the results, which the compiler chooses and the executable tells."""
    m = mesh("x")
    a = jax.device_put(sample(8, 16), spread(m, "x", None))
    y, z = jax.jit(lambda a: (a * 2, a.sum()))(a)
    assert y.addressable_shards[0].data.shape == (1, 16), y.sharding
    compiled = jax.jit(lambda a: a + 1).lower(a).compile()
    assert len(jax.tree.leaves(compiled.output_shardings)) == 1
    return y, z, compiled(a)


@check
def sharding_constraint():
    m = mesh("x", "y")
    def f(a):
        return jnp.sin(lax.with_sharding_constraint(a, spread(m, None, "y"))).T
    return jax.jit(f)(jax.device_put(sample(8, 8), spread(m, "x", None)))


@check
def shard_map_collectives():
    from jax.sharding import PartitionSpec as P
    m = mesh("x")
    def f(a):
        total = lax.psum(a, "x")
        around = lax.ppermute(a, "x", [(k, (k + 1) % 8) for k in range(8)])
        return total + around + lax.axis_index("x"), lax.psum_scatter(jnp.tile(a, (8, 1)), "x", tiled=True)
    return jax.jit(shard_map(f, m, P("x"), (P("x"), P("x"))))(sample(8, 4))


@check
def pure_callback():
    def host(x):
        return np.sin(np.asarray(x)) * 2
    out = jax.ShapeDtypeStruct((5,), np.float32)
    return jax.jit(lambda x: jax.pure_callback(host, out, x) + 1)(sample(5))


@check
def io_callback():
    from jax.experimental import io_callback as call
    seen = []
    def host(x):
        seen.append(np.asarray(x).copy())
        return np.float32(len(seen))
    def f(x):
        a = call(host, jax.ShapeDtypeStruct((), np.float32), x, ordered=True)
        return a + call(host, jax.ShapeDtypeStruct((), np.float32), x * 2, ordered=True)
    y = jax.jit(f)(sample(3))
    jax.effects_barrier()
    return y, seen


@check
def debug_print():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        jax.jit(lambda x: (jax.debug.print("x = {x}", x=x), x + 1)[1])(3.0).block_until_ready()
        jax.effects_barrier()
    assert out.getvalue() == "x = 3.0\n", out.getvalue()
    return 1


@check
def checkify():
    from jax.experimental import checkify as c
    def f(x):
        c.check(x > 0, "x must be positive, not {x}", x=x)
        return jnp.log(x)
    err, y = jax.jit(c.checkify(f))(-1.0)
    assert "x must be positive, not -1.0" in err.get(), err.get()
    return 1


@check
def export():
    from jax import export as e
    platform = jax.devices()[0].platform
    f = jax.jit(lambda x: jnp.cos(x).sum(1))
    made = e.export(f, platforms=[platform, "cpu"] if platform != "cpu" else [platform])(
        jax.ShapeDtypeStruct((4, 3), np.float32))
    back = e.deserialize(made.serialize())
    return back.call(sample(4, 3))


@check
def ahead_of_time():
    c = jax.jit(lambda a, b: a @ b).lower(sample(8, 4), sample(4, 8)).compile()
    cost = c.cost_analysis()
    cost = cost[0] if isinstance(cost, list) else cost
    assert cost["flops"] >= 2 * 8 * 4 * 8 * 0.9, cost
    assert c.memory_analysis().argument_size_in_bytes == 256, c.memory_analysis()
    assert "dot" in c.as_text()
    return c(sample(8, 4), sample(4, 8))


@check
def saved_executables():
    from jax.experimental import serialize_executable as s
    c = jax.jit(lambda x: jnp.exp(x) + 1).lower(sample(4)).compile()
    one = {"execution_devices": jax.devices()[:1]}
    here = one if "execution_devices" in inspect.signature(s.deserialize_and_load).parameters else {}
    return s.deserialize_and_load(*s.serialize(c), **here)(sample(4))


@check
def profiler():
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.jit(lambda x: (x @ x).sum())(sample(64, 64)).block_until_ready()
        files = [f for _, _, names in os.walk(folder) for f in names]
        assert any(f.endswith(".xplane.pb") for f in files), files
    return 1


@check
def memories_and_copies():
    x = jax.device_put(sample(4, 4), jax.devices()[3])
    assert next(iter(x.devices())).id == 3
    y = jax.device_put(x, jax.devices()[1])
    z = jax.device_put(x, spread(mesh("x"), None, None))
    stats = jax.devices()[0].memory_stats()  # XLA's CPU backend has none
    assert stats is None or stats["bytes_in_use"] >= 0, stats
    return x, y, z, np.asarray(x)[1:, ::2]


def plain(result):
    """A tree of numbers as lists of [dtype, shape, values]."""
    out = []
    for leaf in jax.tree_util.tree_leaves(result):
        a = np.asarray(leaf)
        kind = "float64" if a.dtype.kind == "f" else a.dtype.name
        out.append([kind, list(a.shape), a.astype(kind).ravel().tolist()])
    return out


def main():
    out = open(sys.argv[1], "a", buffering=1)
    for name in sys.argv[2:] or CHECKS:
        out.write(json.dumps({"check": name, "begun": True}) + "\n")
        try:
            line = {"check": name, "result": plain(CHECKS[name]())}
        except Exception as e:
            where = traceback.format_exc().strip().splitlines()[-12:]
            line = {"check": name, "error": f"{type(e).__name__}: {e}"[:500], "where": where}
        out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
