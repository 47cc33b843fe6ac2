"""Arrays, constraints and shard_map over three meshes of the same eight devices, against numpy; prints the results' shardings as JSON."""
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

M, N, O = (jax.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(names))
           for sizes, names in [((2, 4), ("x", "y")), ((8,), ("z",)), ((4, 2), ("a", "b"))])


@jax.jit
def step(x, w):
    y = jax.lax.with_sharding_constraint(jnp.tanh(x @ w), NamedSharding(N, P("z")))
    v = jax.lax.with_sharding_constraint(y * 2, NamedSharding(O, P("b", "a")))
    s = jax.shard_map(lambda t: jax.lax.psum(t, "a") * (1 + jax.lax.axis_index("b")), mesh=O, in_specs=P(None, ("a", "b")),
                      out_specs=P(None, "b"))(v)
    return y, v, s, jax.shard_map(lambda t: jax.lax.psum(t, "z"), mesh=N, in_specs=P("z"), out_specs=P())(v), v @ v.T


def main():
    g = np.random.default_rng(0)
    x, w = g.standard_normal((8, 16), np.float32), g.standard_normal((16, 8), np.float32)
    y = np.tanh(x @ w)
    want = (y, 2 * y, (2 * y).reshape(8, 4, 2).sum(1) * np.array([1, 2]), 2 * y.sum(0, keepdims=True), 4 * y @ y.T)
    for place in [((M, P("x", "y")), (N, P("z"))), ((O, P("a", "b")), (M, P("y", "x"))), ((N, P(None, "z")), (N, P()))]:
        got = step(*(jax.device_put(a, NamedSharding(*p)) for a, p in zip((x, w), place)))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
    print(json.dumps([[*a.sharding.mesh.axis_names, str(a.sharding.spec)] for a in got[:4]]))


main()
