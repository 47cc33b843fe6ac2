"""Eight devices: jit with shardings, shard_map with every collective, pmap; prints one JSON line of numbers. Knows nothing of weft."""
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

assert len(jax.devices()) == 8, jax.devices()
mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
out = {}

x = np.arange(64, dtype=np.float32).reshape(8, 8) / 7
xs = jax.device_put(x, NamedSharding(mesh, P("a", "b")))
assert xs.addressable_shards[0].data.shape == (4, 2)
y = jax.jit(lambda x: jnp.sin(x) @ x.T)(xs)
out["matmul"] = float(jnp.sum(jnp.abs(y)))
z = jax.jit(lambda x: x * 2 + 1)(xs)
out["spec kept"] = z.sharding.is_equivalent_to(xs.sharding, 2)
out["constraint"] = float(jax.jit(lambda x: lax.with_sharding_constraint(x.T, NamedSharding(mesh, P("b"))).sum(0)[3])(xs))
out["of one device"] = jax.jit(jnp.tanh).lower(xs).compile().cost_analysis()["transcendentals"]
inspected = []
jax.jit(lambda x: jax.debug.inspect_array_sharding(x @ x, callback=lambda s: inspected.extend(s.shard_shape(x.shape))) or x)(xs)
out["inspected"] = inspected
rows = [jax.device_put(v, NamedSharding(mesh, P("b"))) for v in (np.ones((32, 8), np.float32), np.arange(16).reshape(8, 2), np.ones((8, 64), np.float32))]
out["looked up"] = jax.jit(lambda table, i, w: table[i] @ w)(*rows).addressable_shards[0].data.shape  # cut as the indices, not as w


@jax.jit
@functools.partial(jax.shard_map, mesh=mesh, in_specs=P("a", "b"), out_specs=P("a", "b"))
def collectives(x):
    s = lax.psum(x, "b") + lax.pmax(x, "a") - lax.pmin(x, ("a", "b"))
    g = lax.all_gather(x, "b", axis=1, tiled=True)
    r = lax.psum_scatter(g, "b", scatter_dimension=1, tiled=True)
    p = lax.ppermute(x, "b", [(i, (i + 1) % 4) for i in range(4)])
    t = lax.all_to_all(g, "b", split_axis=1, concat_axis=0, tiled=True)
    i = lax.axis_index("a") * 4 + lax.axis_index("b")
    return s + r + p + t[:4] + i


out["collectives"] = float(jnp.sum(collectives(xs) * jnp.arange(8)))
out["pmap"] = np.asarray(jax.pmap(lambda v: v / lax.psum(v, "i"), axis_name="i")(np.arange(1.0, 9.0))).tolist()


@jax.jit
def step(w, x, y):
    loss, g = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
    return w - 0.1 * g, loss


w = jax.device_put(np.eye(8, dtype=np.float32), NamedSharding(mesh, P(None, "b")))
batch = jax.device_put(x, NamedSharding(mesh, P(("a", "b"))))
target = jax.device_put(np.cos(x), NamedSharding(mesh, P(("a", "b"))))
losses = []
for _ in range(4):
    w, loss = step(w, batch, target)
    losses.append(float(loss))
out["losses"] = losses
print(json.dumps(out))
