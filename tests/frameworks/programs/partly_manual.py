"""shard_map over some of the mesh's axes, the others left to the partitioner: a pipeline whose data and tensor axes are free, experts whose
layers are cut by a free axis, every exchange along a dimension that a free axis cuts too, one shard_map inside another. Prints one JSON
line of numbers; eight devices."""
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

rng = np.random.default_rng(0)
out = {}


def numbers(*shape):
    return (rng.standard_normal(shape) / 4).astype(np.float32)


def mesh_of(shape, names):
    return jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(names))


def put(mesh, value, *spec):
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))


def by(mesh, manual, in_specs, out_specs):
    return lambda f: jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=set(manual), check_vma=False)


# ---- GPipe: manual over stages; rows of a microbatch and the layers' inner side are cut by free axes ----
STAGES, MICRO = 2, 4
pipe = mesh_of((STAGES, 2, 2), ("stage", "data", "tensor"))


@by(pipe, ["stage"], (P("stage"), P("stage"), P()), P())
def pipelined(up, down, x):
    stage = lax.axis_index("stage")

    @jax.checkpoint
    def layer(h):
        return h + jnp.tanh(h @ up[0]) @ down[0]

    def turn(carry, t):
        arrives, results = carry
        h = layer(jnp.where(stage == 0, x[jnp.minimum(t, MICRO - 1)], arrives))
        k = jnp.clip(t - (STAGES - 1), 0, MICRO - 1)
        last = (stage == STAGES - 1) & (t >= STAGES - 1)
        results = results.at[k].set(jnp.where(last, h, results[k]))
        return (lax.ppermute(h, "stage", [(s, s + 1) for s in range(STAGES - 1)]), results), None

    (_, results), _ = lax.scan(turn, (jnp.zeros_like(x[0]), jnp.zeros_like(x)), jnp.arange(MICRO + STAGES - 1))
    return lax.psum(jnp.where(stage == STAGES - 1, results, 0), "stage")


def loss(up, down, x, y):
    return jnp.mean((pipelined(up, down, x) - y) ** 2)


args = (put(pipe, numbers(STAGES, 64, 256), "stage", None, "tensor"), put(pipe, numbers(STAGES, 256, 64), "stage", "tensor"),
        put(pipe, numbers(MICRO, 16, 64), None, "data"), put(pipe, numbers(MICRO, 16, 64), None, "data"))
step = jax.jit(jax.value_and_grad(loss, argnums=(0, 1))).lower(*args).compile()
value, (up, down) = step(*args)
out["pipeline"], out["pipeline: gradient"], out["pipeline: gradient down"] = value, up, down
out["temp"] = step.memory_analysis().temp_size_in_bytes

# ---- experts: manual over experts, their layers' inner side cut by a free axis ----
moe = mesh_of((4, 2), ("expert", "tensor"))


@by(moe, ["expert"], (P("expert"), P("expert"), P("expert")), P("expert"))
def experts(up, down, x):  # x: rows of this device in equal shares for each expert
    given = lax.all_to_all(x.reshape(4, -1, x.shape[-1]), "expert", 0, 0, tiled=True)
    h = jax.nn.gelu(jnp.einsum("erk,kn->ern", given, up[0])) @ down[0]
    return lax.all_to_all(h, "expert", 0, 0, tiled=True).reshape(x.shape)


args = (put(moe, numbers(4, 32, 64), "expert", None, "tensor"), put(moe, numbers(4, 64, 32), "expert", "tensor"), put(moe, numbers(64, 32), "expert"))
value, grads = jax.jit(jax.value_and_grad(lambda *a: (experts(*a) ** 2).sum(), argnums=(0, 1, 2)))(*args)
out["experts"] = value
for name, g in zip(("up", "down", "rows"), grads):
    out[f"experts: gradient {name}"] = g

# ---- each exchange, along dimensions that a free axis cuts and along others ----
grid = mesh_of((4, 2), ("x", "y"))
EXCHANGES = {
    "psum": lambda a: lax.psum(a, "x"),
    "pmax": lambda a: lax.pmax(a, "x"),
    "several": lambda a: sum(lax.psum((a, 2 * a[:2]), "x")[0] for _ in range(2)),
    "ppermute": lambda a: lax.ppermute(a, "x", [(0, 2), (2, 3), (3, 0)]),
    "gather 0": lambda a: lax.all_gather(a, "x", axis=0, tiled=True),
    "gather 1": lambda a: lax.all_gather(a, "x", axis=1),
    "scatter 0": lambda a: lax.psum_scatter(a, "x", scatter_dimension=0, tiled=True),
    "scatter 1": lambda a: lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True),
    "to all 0 1": lambda a: lax.all_to_all(a, "x", 0, 1, tiled=True),
    "to all 1 0": lambda a: lax.all_to_all(a, "x", 1, 0, tiled=True),
    "to all 1 1": lambda a: lax.all_to_all(a, "x", 1, 1, tiled=True),
    "index": lambda a: a * lax.axis_index("x"),
    "sums of rows": lambda a: a - lax.pmean(a.sum(0, keepdims=True), "x"),
    "product": lambda a: a @ lax.all_gather(a, "x", axis=0, tiled=True).T,
    "constraint": lambda a: lax.with_sharding_constraint(jnp.sin(a), P(None, "y")) @ jnp.ones((24, 8)),
}
for place in ("y", None), (None, "y"):
    cut = NamedSharding(grid, P(*place))
    for name, f in EXCHANGES.items():
        both = jax.jit(by(grid, ["x"], P("x"), P("x"))(lambda a, f=f: f(jnp.tanh(a))), in_shardings=cut)
        a = jax.device_put(numbers(32, 24), cut)
        out[f"{name} {place}"] = both(a)
        if name != "pmax":
            out[f"{name} {place}: gradient"] = jax.jit(jax.grad(lambda a: jnp.sin(both(a)).sum()))(a)

# ---- a free axis beside the manual one in one dimension, and one shard_map inside another ----
a = put(grid, numbers(32, 24), ("x", "y"))
both = by(grid, ["x"], P("x"), P("x"))(lambda a: jnp.cumsum(a, 0) + a.mean())
out["beside"] = jax.jit(both)(a)


@by(grid, ["x"], P("x"), P("x"))
def nested(a):
    inner = jax.shard_map(lambda b: b * lax.axis_index("y") + lax.psum(b.sum(), "y"), in_specs=P(None, "y"), out_specs=P(None, "y"),
                          axis_names={"y"}, check_vma=False)
    return lax.psum(inner(a), "x") + jnp.sin(a)


out["nested"] = jax.jit(nested)(a)

print(json.dumps({k: v if isinstance(v, int) else np.asarray(v, np.float64).ravel().tolist() for k, v in out.items()}))
