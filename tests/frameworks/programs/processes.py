"""Programs over a mesh of all devices, whichever process has them: prints one JSON line of results. As several processes with
COORDINATOR, PROCESSES and PROCESS in the environment; without, one process has all devices."""
import json
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

PROCESSES = int(os.environ.get("PROCESSES", "1"))
if PROCESSES > 1:
    jax.distributed.initialize(os.environ["COORDINATOR"], num_processes=PROCESSES, process_id=int(os.environ["PROCESS"]))

N = jax.device_count()
LINE = Mesh(np.array(jax.devices()), ("x",))
GRID = Mesh(np.array(jax.devices()).reshape(N // 2, 2), ("data", "model"))


def put(value, mesh, *spec):
    value = np.asarray(value)
    return jax.make_array_from_callback(value.shape, NamedSharding(mesh, P(*spec)), lambda index: value[index])


def whole(tree):
    """As numpy, on every process."""
    gather = jax.jit(lambda *a: a, out_shardings=NamedSharding(LINE, P()))
    return [np.asarray(a) for a in gather(*jax.tree.leaves(tree))]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def collectives():
    x = put(numbers(2 * N, 3, 2 * N), LINE, "x")
    turn = [(i, (i + 1) % N) for i in range(N)]
    half = [[i for i in range(N) if i % 2 == k] for k in range(2)]

    def body(a):
        return (jax.lax.psum(a, "x"), jax.lax.pmax(a, "x"), jax.lax.all_gather(a, "x"), jax.lax.ppermute(a, "x", turn),
                jax.lax.all_to_all(a, "x", 2, 0, tiled=True), jax.lax.psum_scatter(a, "x", scatter_dimension=2, tiled=True),
                jax.lax.psum(a.astype(jnp.bfloat16), "x").astype(jnp.float32), a * jax.lax.axis_index("x"),
                jax.lax.psum(a, "x", axis_index_groups=half), jax.lax.ppermute(a, "x", [(0, N - 1)]))
    return jax.jit(jax.shard_map(body, mesh=LINE, in_specs=P("x"), out_specs=P("x"), check_vma=False))(x)


def grid():
    x = put(numbers(N, 4), GRID, "data", "model")

    def body(a):
        return jax.lax.psum(a, "model"), jax.lax.all_gather(a, "data", tiled=True), jax.lax.pmean(a, ("data", "model"))
    specs = P("data"), P(None, "model"), P()
    return jax.jit(jax.shard_map(body, mesh=GRID, in_specs=P("data", "model"), out_specs=specs, check_vma=False))(x)


def loop():
    """A ring in a loop whose turns the data decide."""
    x = put(np.arange(N, dtype=np.float32), LINE, "x")

    def turn(state):
        i, a = state
        return i + 1, jax.lax.ppermute(a, "x", [(k, (k + 1) % N) for k in range(N)]) + 1

    def body(a):
        return jax.lax.while_loop(lambda s: jax.lax.psum(s[1], "x")[0] < 10 * N, turn, (0, a))[1]
    return jax.jit(jax.shard_map(body, mesh=LINE, in_specs=P("x"), out_specs=P("x"), check_vma=False))(x)


def step():
    """Two layers cut over both axes, gradients, momentum; five steps."""
    w = put(numbers(8, 16, seed=1), GRID, None, "model"), put(numbers(16, 4, seed=2), GRID, "model")
    x, y = put(numbers(2 * N, 8, seed=3), GRID, "data"), put(numbers(2 * N, 4, seed=4), GRID, "data")

    def loss(p, x, y):
        return jnp.mean((jax.nn.gelu(x @ p[0]) @ p[1] - y) ** 2)

    @jax.jit
    def train(p, m, x, y):
        value, g = jax.value_and_grad(loss)(p, x, y)
        m = jax.tree.map(lambda a, b: 0.9 * a + b, m, g)
        return jax.tree.map(lambda a, b: a - 0.01 * b, p, m), m, value
    m, values = jax.tree.map(jnp.zeros_like, w), []
    for _ in range(5):
        w, m, value = train(w, m, x, y)
        values.append(value)
    return w, values


def attention():
    q, k, v = (put(numbers(N, 8, 2, 4, seed=s), GRID, "data", None, "model") for s in (5, 6, 7))
    return jax.jit(jax.nn.dot_product_attention)(q, k, v)


def various():
    x, i = put(numbers(4 * N, 6), LINE, "x"), put(np.arange(4 * N)[::-1] % 7, LINE, "x")

    def f(x, i):
        key = jax.random.key(3)
        return (jnp.sort(x, axis=0), jnp.argsort(x, axis=1), jnp.cumsum(x, axis=0), x[i], jnp.zeros_like(x).at[i].add(x),
                jnp.linalg.inv(x.T @ x), x.mean(0), x.std(), jax.random.normal(key, (3, 4)), jnp.roll(x, 5, axis=0),
                jnp.concatenate([x, x[::-1]]), jnp.fft.fft(x, axis=0).real, jnp.where(x > 0, x, 0).reshape(-1), x.argmax(),
                jax.lax.reduce_window(x, 0., jax.lax.add, (3, 1), (1, 1), "SAME"), jnp.median(x), jax.lax.top_k(x.T, 3))
    return jax.jit(f)(x, i)


def convolution():
    x, w = put(numbers(N, 8, 8, 4), GRID, "data", None, None, "model"), put(numbers(3, 3, 4, 6), GRID, None, None, "model")
    return jax.jit(lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))(x, w)


def some_axes():
    """Manual over one axis of two."""
    x = put(numbers(N, 4), GRID, "data", "model")
    f = jax.shard_map(lambda a: jax.lax.psum(jnp.sin(a), "data"), mesh=GRID, in_specs=P("data"), out_specs=P(), axis_names={"data"})
    return jax.jit(f)(x)


def scan():
    x = put(numbers(6, N, 4), LINE, None, "x")
    return jax.jit(lambda x: jax.lax.scan(lambda c, a: (c + a @ a.T @ c, c.sum()), jnp.ones((N, 4)), x * 0.1))(x)


def local_data():
    sharding = NamedSharding(LINE, P("x"))
    rows = numbers(N, 3, seed=9)
    each = N // PROCESSES
    first = jax.process_index() * each
    x = jax.make_array_from_process_local_data(sharding, rows[first:first + each])
    return jax.jit(lambda a: (a * 2, a.sum(0)))(x)


def donated():
    x = put(numbers(N, 3), LINE, "x")
    f = jax.jit(lambda a: a * 2 + a.sum(), donate_argnums=0)
    return f(f(x))


def utilities():
    own = np.array([jax.process_index() + 1])
    everyone = multihost_utils.process_allgather(own)
    multihost_utils.sync_global_devices("utilities")
    first = multihost_utils.broadcast_one_to_all(own)
    assert everyone.ravel().tolist() == list(range(1, PROCESSES + 1)) and first.tolist() == [1], (everyone, first)
    assert (jax.process_count(), len(jax.local_devices())) == (PROCESSES, N // PROCESSES)
    assert [d.process_index for d in jax.devices()] == sorted(list(range(PROCESSES)) * (N // PROCESSES))
    alone = jax.jit(lambda a: a + jax.process_index())(jnp.arange(3))  # of this process only
    assert alone.tolist() == [jax.process_index() + k for k in range(3)]
    return ()


def callbacks():
    """Of a whole array: by the process that has the first device; in shard_map: by the one that has the part."""
    x, whole_seen, parts_seen = put(np.arange(N, dtype=np.float32), LINE, "x"), [], []
    jax.jit(lambda a: jax.debug.callback(lambda v: whole_seen.append(v.tolist()), a) or a)(x)
    jax.jit(jax.shard_map(lambda a: jax.debug.callback(lambda v: parts_seen.append(int(v[0])), a) or a, mesh=LINE, in_specs=P("x"),
                          out_specs=P("x")))(x)
    jax.effects_barrier()
    assert whole_seen == ([list(range(N))] if jax.process_index() == 0 else []), whole_seen
    assert sorted(parts_seen) == [d.id for d in jax.local_devices()], parts_seen
    given = jax.ShapeDtypeStruct((N,), np.float32)
    return jax.jit(lambda a: jax.pure_callback(lambda v: np.asarray(v) + 1, given, a) * 2)(x)


def elsewhere():
    """A program on the first device alone, which the others start as well."""
    first = Mesh(np.array(jax.devices()[:1]), ("x",))
    x = jax.make_array_from_callback((3,), NamedSharding(first, P()), lambda index: np.ones(3, np.float32)[index], dtype=np.float32)
    y = jax.jit(lambda a: a + 1)(x)
    assert len(y.addressable_shards) == (jax.process_index() == 0)
    return ()


PROGRAMS = (collectives, grid, loop, step, attention, various, convolution, some_axes, scan, local_data, donated, utilities, callbacks, elsewhere)
chosen = [p for p in PROGRAMS if p.__name__ in sys.argv[1:]] or PROGRAMS
print(json.dumps({p.__name__: [a.astype(np.float64).ravel().tolist() for a in whole(p())] for p in chosen}))
