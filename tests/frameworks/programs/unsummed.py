"""Arrays whose parts have yet to be summed (unreduced axes): what each of four devices holds, and the sums; prints JSON."""
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
jax.set_mesh(mesh)
rng = np.random.RandomState(0)
a, b = rng.randint(-4, 4, (4, 8)).astype(np.float32), rng.randint(-4, 4, (8, 6)).astype(np.float32)
due = P("x", None, unreduced={"y"})
out = {}


def note(name, f, *args):
    f = jax.jit(f)
    y = f(*args)
    text = f.lower(*args).compile().as_text()
    total = jax.jit(lambda y: jax.sharding.reshard(y, P(*[None] * y.ndim)))(y)
    spec = y.sharding.spec
    out[name] = {"spec": [str(spec.partitions), sorted(spec.unreduced)], "parts": [np.asarray(s.data).tolist() for s in y.addressable_shards],
                 "total": np.asarray(total).tolist(), "sums": text.count("all-reduce(") + text.count("reduce-scatter(")}
    return y


x, w = jax.device_put(a, P("x", "y")), jax.device_put(b, P("y", None))
product = lambda x, w: jnp.einsum("ij,jk->ik", x, w, out_sharding=due)
c = note("product", product, x, w)
note("added", lambda x, w, c: product(x, w) + c, x, w, c)
note("sliced", lambda c: c[:, 1:] + c[:, :-1], c)
note("transposed", lambda c: c.T, c)
note("joined", lambda c: jnp.concatenate([c, c], axis=1), c)
note("of rows", lambda x: jax.lax.reduce_sum(x, axes=(1,), out_sharding=P("x", unreduced={"y"})), x)
note("in parts", lambda c: jax.sharding.reshard(c, P("x", "y")), c)
note("from whole", lambda v: jax.sharding.reshard(v, P(None, unreduced={"x"})), jax.device_put(np.arange(4.0, dtype=np.float32), P(None)))
note("from parts", lambda v: jax.sharding.reshard(v, P(None, unreduced={"x"})), jax.device_put(np.arange(4.0, dtype=np.float32), P("x")))
note("gradient of a cut", jax.grad(lambda v: jax.sharding.reshard(v, P("x")).sum()),
     jax.device_put(np.arange(4.0, dtype=np.float32), P(None, reduced={"x"})))
note("sum of sums", lambda c: jax.sharding.reshard(c, P("x", None)).sum(1), c)
note("by segment", lambda v, i: jax.ops.segment_sum(v, i, num_segments=4, out_sharding=P(unreduced={"x"})),
     jax.device_put(np.arange(8.0, dtype=np.float32), P("x")), jax.device_put(np.array([0, 0, 1, 1, 1, 2, 2, 3]), P("x")))
note("counted", lambda i: jnp.bincount(i, length=3, out_sharding=P(unreduced={"x", "y"})), jax.device_put(np.array([0, 2, 1, 1]), P(("x", "y"))))
note("with what it begins", lambda x: jax.lax.reduce(x * x, jnp.float32(5), jax.lax.add, (1,)), x)


def accumulated(x, w):
    """Gradients of several batches are summed over devices once, after the loop."""
    zero = jax.sharding.reshard(jnp.zeros((4, 6), jnp.float32), due)
    total, _ = jax.lax.scan(lambda acc, i: (acc + product(x * i, w), None), zero, jnp.arange(1.0, 4.0))
    return jax.sharding.reshard(total, P("x", None))


note("accumulated", accumulated, x, w)
print(json.dumps(out))
