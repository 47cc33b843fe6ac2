"""Four devices that take different branches and turns of loops, with collectives after them; calls that wait for those of other
devices, in other places of the program, one of which raises."""
import json
import os
import threading

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

N = 4
mesh = Mesh(np.array(jax.devices()[:N]), ("x",))
x = jnp.arange(64.0 * 8).reshape(64, 8) / 100


def over(f, ins, outs, check_vma=True, **options):
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=check_vma), **options)


def branch(x):
    i = lax.axis_index("x")
    y = lax.cond(i % 2 == 0, lambda v: jnp.sin(v) @ jnp.ones((8, 8)), lambda v: v * 3.0, x)
    return y + lax.psum(y, "x")


def turns(x):
    i = lax.axis_index("x")
    y = lax.fori_loop(0, i + 1, lambda k, v: jnp.tanh(v) + k, x)
    z = lax.while_loop(lambda v: v.sum() < 100 * (1 + i), lambda v: v * 1.5 + 1, y)
    return lax.psum(z, "x"), lax.ppermute(z, "x", [(k, (k + 1) % N) for k in range(N)])


def chosen(x):
    i = lax.axis_index("x")
    y = lax.switch(i, [lambda v: v, lambda v: -v, lambda v: v * v, lambda v: jnp.cumsum(v, 0)], x)
    return y, lax.cond(i == 2, lambda: 1.0, lambda: 2.0)[None]


def update(w, x):
    """Whole weights, given up."""
    w = lax.cond(lax.axis_index("x") > 1, lambda: w + 1.0, lambda: w * 2.0)
    return lax.pmean(w, "x"), x + w.sum()


out = {"branch": over(branch, P("x"), P("x"))(x), "chosen": over(chosen, P("x"), (P("x"), P("x")))(x),
       "turns": over(turns, P("x"), (P(), P("x")), check_vma=False)(x),
       "gradient": jax.jit(jax.grad(lambda x: (over(branch, P("x"), P("x"))(x) ** 2).sum()))(x)}
step = over(update, (P(), P("x")), (P(), P("x")), check_vma=False, donate_argnums=0)
w = jax.device_put(jnp.ones(64), NamedSharding(mesh, P()))
for _ in range(3):
    w, out["update"] = step(w, x)
out["weights"] = w
out["told apart"] = [float(s.data[0]) for s in over(lambda x: lax.cond(lax.axis_index("x") == 1, lambda: jnp.ones(1), lambda: jnp.zeros(1)),
                                                     P("x"), P(), check_vma=False)(x).addressable_shards]
out["mapped"] = jax.pmap(lambda v: lax.cond(lax.axis_index("i") == 1, lambda: jnp.exp(v), lambda: v * 2) + lax.pmean(v, "i"), axis_name="i",
                         devices=jax.devices()[:N])(x.reshape(4, 16, 8))
out = {k: [np.asarray(a).tolist() for a in jax.tree.leaves(v)] for k, v in out.items()}

if os.environ.get("JAX_PLATFORMS") == "weft":
    meet, fail = threading.Barrier(N, timeout=100), threading.Barrier(N, timeout=100)

    def wait(at, v, raises=False):
        at.wait()
        if raises:
            raise ValueError("one of four")
        return v * 2

    def call(v, *args):
        return io_callback(lambda v: wait(*args[:1], v, *args[1:]), jax.ShapeDtypeStruct(v.shape, v.dtype), v)

    def elsewhere(v):
        """The first device calls in a branch of its own, the others behind it."""
        v = lax.cond(lax.axis_index("x") == 0, lambda: call(v, fail, True), lambda: v)
        return lax.cond(lax.axis_index("x") == 0, lambda: v, lambda: call(v, fail)) + lax.psum(v, "x")
    out["met"] = over(lambda v: call(v, meet), P("x"), P("x"), check_vma=False)(x).tolist() == (2 * x).tolist()
    try:
        over(elsewhere, P("x"), P("x"), check_vma=False)(x).block_until_ready()
    except jax.errors.JaxRuntimeError as e:
        out["raised"] = "one of four" in str(e)
print(json.dumps(out))
