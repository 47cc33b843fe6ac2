"""jax.lax.ragged_all_to_all of four devices, as numpy has it: exchanges of rows of two shapes, one or two updates for each peer; and gradients."""
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

N, ROWS, OUT = 4, 12, 20
mesh = jax.make_mesh((N,), ("x",), axis_types=(AxisType.Auto,))
rng = np.random.default_rng(0)


def exchange(*parts):
    return jax.lax.ragged_all_to_all(*(p[0] for p in parts), axis_name="x")[None]


f = jax.jit(jax.shard_map(exchange, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
for wide, each in [((3,), 1), ((2, 2), 2), ((), 1)]:
    x, out = rng.standard_normal((N, ROWS, *wide)).astype(np.float32), np.full((N, OUT, *wide), -1, np.float32)
    n = N * each
    sizes = rng.integers(0, ROWS // n + 1, (N, n)).astype(np.int32)
    starts = (np.cumsum(sizes, 1) - sizes).astype(np.int32)
    where, received, want = np.zeros_like(sizes), np.zeros_like(sizes), out.copy()
    for to in range(N):
        at = 1
        for peer in range(N):
            for k in range(to * each, (to + 1) * each):
                size, start = sizes[peer, k], starts[peer, k]
                where[peer, k] = at
                received[to, peer * each + k % each] = size
                want[to, at:at + size] = x[peer, start:start + size]
                at += size
    args = x, out, starts, sizes, where, received
    np.testing.assert_array_equal(f(*args), want)
    if each > 1:  # JAX's transpose wants one
        continue
    grad = jax.grad(lambda x, out: jnp.sum(f(x, out, *args[2:]) ** 2) / 2, argnums=(0, 1))(x, out)
    kept = np.zeros_like(x)
    for peer in range(N):
        for size, start in zip(sizes[peer], starts[peer]):
            kept[peer, start:start + size] += x[peer, start:start + size]
    np.testing.assert_allclose(grad[0], kept, rtol=1e-2)  # products of a chip are bfloat16
print("true")
