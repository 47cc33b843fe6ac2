"""Pipeline and expert parallelism as people write them, and what they compute written plainly: GPipe over stages (shard_map, ppermute) with
data parallelism beside it, a mixture of experts with a capacity (all_to_all), and one that drops no token (ragged_all_to_all, which XLA's CPU
backend does not have). Prints one JSON line of numbers."""
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

N = jax.device_count()
rng = np.random.default_rng(0)
out = {}


def numbers(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def put(mesh, value, *spec):
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))


def layer(w, h):
    return h + jnp.tanh(h @ w)


# ---- GPipe: stages along one axis, replicas of the pipeline along the other ----
STAGES, MICRO, ROWS, WIDE = N // 2, 6, 4, 8
pipe = Mesh(np.array(jax.devices()).reshape(2, STAGES), ("data", "stage"))


def pipelined(w, x):
    """w: (STAGES, WIDE, WIDE), cut by stage; x: (MICRO, rows, WIDE), rows cut by data. Microbatch k is at stage s in turn k + s."""
    def one(w, x):
        stage = lax.axis_index("stage")

        def turn(carry, t):
            arrives, results = carry
            h = layer(w[0], jnp.where(stage == 0, x[jnp.minimum(t, MICRO - 1)], arrives))
            k = jnp.clip(t - (STAGES - 1), 0, MICRO - 1)
            last = (stage == STAGES - 1) & (t >= STAGES - 1)
            results = results.at[k].set(jnp.where(last, h, results[k]))
            return (lax.ppermute(h, "stage", [(s, s + 1) for s in range(STAGES - 1)]), results), None

        (_, results), _ = lax.scan(turn, (jnp.zeros_like(x[0]), jnp.zeros_like(x)), jnp.arange(MICRO + STAGES - 1))
        return lax.psum(jnp.where(stage == STAGES - 1, results, 0), "stage")
    return jax.shard_map(one, mesh=pipe, in_specs=(P("stage"), P(None, "data")), out_specs=P(None, "data"), check_vma=False)(w, x)


@jax.jit
def pipeline_step(w, x, y):
    value, g = jax.value_and_grad(lambda w: jnp.mean((pipelined(w, x) - y) ** 2))(w)
    return w - 0.5 * g, value


w, x, y = put(pipe, numbers(STAGES, WIDE, WIDE) * 0.3, "stage"), numbers(MICRO, 2 * ROWS, WIDE), numbers(MICRO, 2 * ROWS, WIDE)
plain = functools.reduce(lambda h, s: layer(s, h), np.asarray(w), x)
out["pipeline"] = np.asarray(pipelined(w, put(pipe, x, None, "data"))).ravel().tolist()
np.testing.assert_allclose(np.ravel(plain), out["pipeline"], rtol=1e-4, atol=1e-5)
values = []
for _ in range(3):
    w, value = pipeline_step(w, put(pipe, x, None, "data"), put(pipe, y, None, "data"))
    values.append(float(value))
out["pipeline training"] = values + np.asarray(w).ravel().tolist()

# ---- experts: one a device, tokens cut over the same devices ----
TOKENS, FEATURES, HIDDEN, ROOM = 16, 8, 12, 6
line = Mesh(np.array(jax.devices()), ("expert",))


def expert(u, v, h):
    return jax.nn.gelu(h @ u) @ v


def with_capacity(gate, u, v, x):
    """Each device keeps ROOM places of each expert for its own tokens, the first that want it; others pass by."""
    def one(gate, u, v, x):
        p = jax.nn.softmax(x @ gate)
        choice = p.argmax(-1)
        chosen = jax.nn.one_hot(choice, N)
        place = (jnp.cumsum(chosen, 0) * chosen).sum(-1) - 1
        mask = chosen[:, :, None] * jax.nn.one_hot(place, ROOM)[:, None, :]  # token, expert, place
        sent = jnp.einsum("tec,tf->ecf", mask, x)
        here = lax.all_to_all(sent, "expert", 0, 0, tiled=True)  # of each device, the places of this one's expert
        back = lax.all_to_all(expert(u[0], v[0], here), "expert", 0, 0, tiled=True)
        return jnp.einsum("tec,ecf->tf", mask, back) * p.max(-1)[:, None]
    spec = P("expert")
    return jax.shard_map(one, mesh=line, in_specs=(P(), spec, spec, spec), out_specs=spec)(gate, u, v, x)


def dropless(gate, u, v, x):
    """Every token goes to its expert and comes back, sorted by expert in between; at worst all come to one."""
    def one(gate, u, v, x):
        p = jax.nn.softmax(x @ gate)
        choice = p.argmax(-1)
        order = jnp.argsort(choice)
        sizes = jnp.bincount(choice, length=N).astype(jnp.int32)
        starts = jnp.cumsum(sizes) - sizes
        every = lax.all_gather(sizes, "expert")  # device, expert
        mine = lax.axis_index("expert")
        where = jnp.cumsum(every, 0) - every  # where a device's tokens begin at an expert
        come = every[:, mine]
        here = lax.ragged_all_to_all(x[order], jnp.zeros((N * len(x), x.shape[1])), starts, sizes, where[mine], come, axis_name="expert")
        here = expert(u[0], v[0], here)
        begin = jnp.cumsum(every, 1) - every  # where an expert's tokens began on a device
        back = lax.ragged_all_to_all(here, jnp.zeros_like(x), where[:, mine], come, begin[:, mine], sizes, axis_name="expert")
        return jnp.zeros_like(x).at[order].set(back) * p.max(-1)[:, None]
    spec = P("expert")
    return jax.shard_map(one, mesh=line, in_specs=(P(), spec, spec, spec), out_specs=spec, check_vma=False)(gate, u, v, x)


def plainly(gate, u, v, x):
    p = jax.nn.softmax(x @ gate)
    every = jnp.stack([expert(u[e], v[e], x) for e in range(N)])
    return every[p.argmax(-1), jnp.arange(len(x))] * p.max(-1)[:, None]


gate, u, v, x = numbers(FEATURES, N), numbers(N, FEATURES, HIDDEN) * 0.5, numbers(N, HIDDEN, FEATURES) * 0.5, numbers(TOKENS * N, FEATURES)
args = put(line, gate), put(line, u, "expert"), put(line, v, "expert"), put(line, x, "expert")
out["experts"] = np.asarray(jax.jit(with_capacity)(*args)).ravel().tolist()
grads = jax.jit(jax.grad(lambda *a: (with_capacity(*a) ** 2).sum(), argnums=(0, 1, 2)))(*args)
out["experts' gradients"] = np.concatenate([np.ravel(g) for g in grads]).tolist()
every_token = dropless if jax.default_backend() != "cpu" else plainly
out["experts, no token dropped"] = np.asarray(jax.jit(every_token)(*args)).ravel().tolist()
print(json.dumps(out))
