"""Programs on eight devices with what XLA's CPU backend computes for them: manual computations (full, partial, nested),
collectives in loops, control flow that differs between devices, both partitioners. Writes NAME.mlir and NAME.npz (in0 ...,
out0 ...) beside itself; needs jax 0.10.2. Read by src/interp/parallel_test.c."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, shard_map
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

here = os.path.dirname(os.path.abspath(__file__))
devices = np.array(jax.devices())
ab = Mesh(devices.reshape(2, 4), ("a", "b"))
abc = Mesh(devices.reshape(2, 2, 2), ("a", "b", "c"))
x = np.arange(8 * 16, dtype=np.float32).reshape(8, 16)
w = np.arange(16 * 8, dtype=np.float32).reshape(16, 8) / 64


def case(name, f, *args, put=None, shardy=True):
    jax.config.update("jax_use_shardy_partitioner", shardy)
    j = jax.jit(f)
    given = [jax.device_put(a, NamedSharding(ab, s)) for a, s in zip(args, put)] if put else args
    with open(f"{here}/{name}.mlir", "w") as out:
        out.write(j.lower(*given).as_text())
    results = jax.tree.leaves(j(*given))
    arrays = {f"in{i}": np.asarray(a) for i, a in enumerate(args)}
    arrays |= {f"out{i}": np.asarray(r) for i, r in enumerate(results)}
    np.savez(f"{here}/{name}.npz", **arrays)
    jax.config.update("jax_use_shardy_partitioner", True)


def partial_manual(x):
    f = lambda y: y * 2 + lax.psum(y, "a")
    return shard_map(f, mesh=ab, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})(x)


def partial_manual2(x):
    def f(y):
        z = lax.all_gather(y, "b", axis=1, tiled=True)
        return y + lax.axis_index("b").astype(y.dtype) * 100 + z[:, :4]

    return jnp.sin(shard_map(f, mesh=ab, in_specs=P(None, "b"), out_specs=P(None, "b"), axis_names={"b"})(x))


def nested_manual(x):
    def inner(y):
        return y + lax.psum(y, "b") * lax.axis_index("b")

    def outer(y):
        mesh = jax.sharding.get_abstract_mesh()
        z = shard_map(inner, mesh=mesh, in_specs=P(None, "b"), out_specs=P(None, "b"), axis_names={"b"})(y)
        return z + lax.psum(z, "a")

    return shard_map(outer, mesh=ab, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})(x)


def coll2d(x):
    def f(y):
        i = lax.axis_index(("a", "b"))
        p = lax.ppermute(y, "b", [(0, 1), (1, 2), (2, 3)])
        q = lax.all_to_all(y, "b", 1, 0, tiled=True)
        r = lax.psum_scatter(y, "a", scatter_dimension=1, tiled=True)
        return p + i, q, r, lax.pmean(y, ("a", "b")), lax.pmax(y, "b")

    both = P(("a", "b"), None)
    specs = (both, both, both, P(), P("a", None))
    return shard_map(f, mesh=ab, in_specs=P("a", None), out_specs=specs, check_vma=False)(x)


def diverge(x):
    def f(y):
        k = lax.axis_index("a") * 4 + lax.axis_index("b")
        n, z = lax.while_loop(lambda c: c[0] < k, lambda c: (c[0] + 1, c[1] * 2), (jnp.int32(0), y))
        return lax.cond(k % 2 == 0, lambda u: u + 1, lambda u: u - 1, z)

    return shard_map(f, mesh=ab, in_specs=P("a", "b"), out_specs=P("a", "b"))(x)


def mesh3(x, w):
    h = lax.with_sharding_constraint(x @ w, NamedSharding(abc, P("a", ("b", "c"))))
    f = lambda y: lax.psum(y, ("b", "c")) + y.shape[1]
    return shard_map(f, mesh=abc, in_specs=P("a", ("b", "c")), out_specs=P("a", None))(h)


def ring(x):
    def f(y):
        def body(i, c):
            acc, block = c
            return acc + block * i, lax.ppermute(block, "b", [(j, (j + 1) % 4) for j in range(4)])

        return lax.fori_loop(0, 4, body, (jnp.zeros_like(y), y))[0]

    return shard_map(f, mesh=ab, in_specs=P("a", "b"), out_specs=P("a", "b"), check_vma=False)(x)


def grad_shardmap(x, w):
    def loss(w):
        f = lambda y, w: lax.psum(jnp.sum(jnp.tanh(y @ w)), ("a", "b"))
        return shard_map(f, mesh=ab, in_specs=(P("a", "b"), P("b", None)), out_specs=P())(x / 100, w)

    return jax.value_and_grad(loss)(w)


def psum_bf16(x):
    """Rounded once, not at every addition."""
    def f(y):
        b = y.astype(jnp.bfloat16)
        sums = lax.psum(b, ("a", "b")), lax.psum_scatter(b, "b", scatter_dimension=1, tiled=True)
        return [s.astype(jnp.float32) for s in sums]

    both = P(("a", "b"))
    return shard_map(f, mesh=ab, in_specs=both, out_specs=[P(), P("a", "b")])(jnp.sin(x))


def partial_matmul(x, w):
    f = lambda a, b: lax.psum(a @ b, "b")
    specs = (P(None, "b"), P("b", None))
    return jax.nn.softmax(shard_map(f, mesh=ab, in_specs=specs, out_specs=P(), axis_names={"b"})(x, w))


case("partial_manual", partial_manual, x, put=[P("a", "b")])
case("partial_manual_gspmd", partial_manual, x, put=[P("a", "b")], shardy=False)
case("partial_manual2", partial_manual2, x, put=[P("a", "b")])
case("nested_manual", nested_manual, x)
case("coll2d", coll2d, x)
case("coll2d_gspmd", coll2d, x, shardy=False)
case("diverge", diverge, x)
case("mesh3", mesh3, x, w)
case("ring", ring, x)
case("grad_shardmap", grad_shardmap, x, w)
case("psum_bf16", psum_bf16, x)
case("partial_matmul", partial_matmul, x, w, put=[P("a", "b"), P("b", None)])
case("partial_matmul_gspmd", partial_matmul, x, w, put=[P("a", "b"), P("b", None)], shardy=False)
