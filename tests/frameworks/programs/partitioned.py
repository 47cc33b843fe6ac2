"""Programs with shardings, computed as the program of one device for each device and as a whole: prints one JSON line with
what differs, and how many programs were run in parts. Shardings are drawn by a seed: SEED COUNT in the arguments."""
import json
import os
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

N = jax.device_count()
MESHES = [Mesh(np.array(jax.devices()), ("x",))]
if N >= 4:
    MESHES.append(Mesh(np.array(jax.devices()).reshape(N // 2, 2), ("x", "y")))
    MESHES.append(Mesh(np.array(jax.devices())[::-1].reshape(2, N // 2), ("y", "x")))  # in another order
CASES = {}


def case(*shapes, integers=(), near=1e-5):
    """A function of arrays of these shapes; those in `integers` hold numbers from 0 to 6."""
    def add(f):
        CASES[f.__name__] = f, shapes, integers, near
        return f
    return add


@case((16, 8), (16, 8))
def elementwise(a, b):
    return jnp.where(a > b, jnp.sin(a) * b, jax.nn.gelu(a) - b), (a > 0) & (b < 0), jnp.clip(a, -0.5, 0.5)


@case((16, 8), (8, 32), (32, 16))
def products(a, b, c):
    return a @ b @ c, jnp.einsum("ij,kj->ik", a, c.T[:, :8] @ jnp.eye(8)), (a @ b).sum(0), b.T @ a.T


@case((8, 16, 4), (8, 4, 16))
def batched_products(a, b):
    return a @ b, jnp.einsum("bij,bjk->ik", a, b), jnp.einsum("bij,cjk->bcik", a, b)[:, ::2]


@case((16, 24))
def reductions(a):
    return (a.sum(0), a.max(1), a.min(), a.mean((0, 1)), jnp.prod(a * 0.5, 1), a.argmax(0), a.argmin(), (a > 0).any(0), (a < 9).all(),
            a.var(0), jnp.median(a, 0), jax.nn.logsumexp(a, 1), jax.nn.softmax(a, 0), jnp.linalg.norm(a))


@case((16, 24))
def sorting(a):
    return (jnp.sort(a, 0), jnp.sort(a, 1), jnp.argsort(a, 0), lax.top_k(a, 3), lax.sort((a.round(1), a), num_keys=2),
            jnp.unique(a.round(), size=8), jnp.searchsorted(jnp.sort(a[:, 0]), a[0]))


@case((16, 24))
def running_sums(a):
    return jnp.cumsum(a, 0), jnp.cumsum(a, 1), lax.cummax(a, 0), lax.associative_scan(jnp.add, a, axis=0), jnp.cumprod(a * 0.5, 1)


@case((16, 24))
def windows(a):
    pooled = lax.reduce_window(a, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID")
    grown = jax.grad(lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (3, 3), (1, 2), "SAME").sum())(a)
    return pooled, grown, lax.reduce_window(a, 0., lax.add, (3, 1), (1, 1), "SAME"), lax.reduce_window(a, 1., lax.mul, (1, 3), (1, 1), "SAME")


@case((16, 8), (16,), (24, 3), integers=(1, 2))
def gathers(a, i, j):
    return (a[i], a[j], a[i, i % 8], jnp.take(a, i % 8, axis=1), jnp.take_along_axis(a, (i % 8)[:, None], 1), a[3], a[:, 2:5], a[::-2],
            jax.vmap(lambda r, k: r[k])(a, i), lax.dynamic_slice(a, (i[0], 0), (8, 8)))


@case((16, 8), (32,), (32,), (32,), (32, 8), integers=(1, 2))
def updates(a, i, j, u, rows):
    """Single elements and rows of an array that is there, read, added to, and bounded."""
    k = jnp.minimum(j, 7)
    return a[i, k], a.at[i, k].add(u), a.at[i].add(rows), a.at[i, k].max(u), a.at[i].min(rows), jnp.diag(a[:8]), jnp.zeros((16, 8)).at[i, k].add(u)


@case((16, 8), (16,), (16, 8), integers=(1,))
def scatters(a, i, u):
    return (a.at[i].add(u), a.at[i].max(u), a.at[:, i % 8].mul(2.), a.at[3].set(1.), a.at[2:6].set(u[:4]), jnp.zeros_like(a).at[i].add(u),
            jax.ops.segment_sum(u, i, 8), jnp.zeros((16, 8)).at[i, i % 8].add(u[:, 0]), lax.dynamic_update_slice(a, u[:4, :2], (i[0], i[1])))


@case((16, 8), (16,), integers=(1,))
def gradient_of_lookup(a, i):
    return jax.grad(lambda a: (a[i] ** 2).sum() + a[i % 8, i % 8].sum())(a)


@case((16, 24))
def moves(a):
    return (a.T, a.reshape(-1), a.reshape(8, 2, 24), a.reshape(16, 4, 6).swapaxes(1, 2), jnp.roll(a, 5, 0), jnp.roll(a, 7, 1),
            jnp.concatenate([a, a[::-1]], 0), jnp.concatenate([a, a], 1), jnp.pad(a, ((1, 2), (0, 3))), jnp.flip(a, 1), jnp.tile(a, (2, 1)),
            jnp.repeat(a, 2, 0), jnp.stack([a, -a], 1), jnp.split(a, 4, 0), a[None, :, 3])


@case((16, 8))
def bits(a):
    return (lax.bitcast_convert_type(a, jnp.uint32), lax.bitcast_convert_type(a, jnp.uint8), lax.bitcast_convert_type(
        lax.bitcast_convert_type(a, jnp.uint16), jnp.float32), a.astype(jnp.bfloat16).astype(jnp.float32), (a * 20).astype(jnp.int8),
        lax.population_count(lax.bitcast_convert_type(a, jnp.uint32)))


@case((16, 8), near=1e-3)
def halves(a):
    b = a.astype(jnp.bfloat16)
    return (b.sum(0) * 0.25).astype(jnp.float32).round(1), (b * 2).astype(jnp.float32)


@case((16, 8))
def indices(a):
    r, c = lax.broadcasted_iota(jnp.int32, (16, 8), 0), lax.broadcasted_iota(jnp.float32, (16, 8), 1)
    return a + r, a * c, jnp.tril(a), jnp.where(r < 5, a, 0), jnp.arange(16) * a[:, 0], jnp.eye(16, 8) * a


@case((16, 8))
def random_numbers(a):
    key = jax.random.fold_in(jax.random.key(3), (a[0, 0] * 100).astype(jnp.int32))
    return (jax.random.normal(key, (16, 8)) + a, jax.random.bits(key, (16,)), jax.random.permutation(key, a), jax.random.uniform(key, (24,)),
            jax.random.categorical(key, a), jax.random.gamma(key, 2., (8,)), lax.rng_bit_generator(jnp.arange(4, dtype=jnp.uint32), (16, 8))[1])


@case((8, 16, 16, 4), (3, 3, 4, 8), near=2e-5)
def convolutions(x, w):
    dims = ("NHWC", "HWIO", "NHWC")
    f = lambda x, w, s, p, **k: lax.conv_general_dilated(x, w, s, p, dimension_numbers=dims, **k)
    grads = jax.grad(lambda x, w: (f(x, w, (1, 1), "SAME") ** 2).mean(), (0, 1))(x, w)
    return (f(x, w, (1, 1), "SAME"), f(x, w, (2, 2), "VALID"), f(x, w, (1, 1), "SAME", rhs_dilation=(2, 2)), f(x, w, (1, 1), [(1, 2), (2, 1)],
            lhs_dilation=(2, 2)), f(x, w[:, :, :1], (1, 1), "SAME", feature_group_count=4), grads)


@case((8, 16, 8), (3, 8, 8))
def convolution_of_lines(x, w):
    return lax.conv_general_dilated(x, w, (1,), [(2, 0)], dimension_numbers=("NWC", "WIO", "NWC"))


@case((16, 8), (8, 8))
def loop_until(a, b):
    return lax.while_loop(lambda s: (jnp.abs(s[1]).max() > 0.1) & (s[0] < 20), lambda s: (s[0] + 1, jnp.tanh(s[1] @ b * 0.3)), (0, a))


@case((6, 16, 8), (8, 8), near=5e-5)  # gradients that grow: sums in another order; of f64 all agree to 1e-12
def scans(a, b):
    c, ys = lax.scan(lambda c, x: (jnp.tanh(c @ b + x), (c.sum(), x * 2)), a[0], a)
    return c, ys, jax.grad(lambda b: lax.scan(lambda c, x: (jnp.tanh(c @ b + x), None), a[0], a)[0].sum())(b)


@case((16, 8))
def loop_with_rows(a):
    return lax.fori_loop(0, 5, lambda i, s: s.at[i].set(s[i] * 2 + s[i + 1]), a), lax.map(lambda r: r.sum() * r, a)


@case((16, 8), (16, 8))
def branches(a, b):
    return (lax.cond(a.sum() > 0, lambda a, b: (a + b, a.sum(0)), lambda a, b: (a @ jnp.eye(8), b.sum(0)), a, b),
            lax.switch((jnp.abs(a).max() * 10).astype(jnp.int32) % 3, [jnp.sin, lambda a: a * b, lambda a: jnp.flip(a, 0)], a))


@case((16, 24), (8, 8, 8))
def transforms(a, b):
    f, g = jnp.fft.fft(a, axis=0), jnp.fft.rfft(a, axis=1)
    return f.real, f.imag, jnp.abs(g), jnp.fft.irfft(g, axis=1), jnp.abs(jnp.fft.fftn(b))


@case((8, 6, 6), (12, 12), (12, 4), near=2e-4)
def linear_algebra(a, b, c):
    s, t = a @ a.mT + 6 * jnp.eye(6), b @ b.T + 12 * jnp.eye(12)
    return (jnp.linalg.cholesky(s), jnp.linalg.inv(t), jnp.linalg.solve(s, a), jnp.linalg.eigvalsh(t), jnp.linalg.svd(a, compute_uv=False),
            jnp.abs(jnp.linalg.qr(b)[1]), jnp.linalg.det(a * 0.5), jax.scipy.linalg.solve_triangular(t, c, lower=True))


@case((16, 8, 2, 4), (16, 8, 2, 4), (16, 8, 2, 4))
def attention(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True), jax.grad(lambda q: (jax.nn.dot_product_attention(q, k, v) ** 2).sum())(q)


@case((16, 8), (8, 32), (32, 8), (16,), integers=(3,))
def training(x, w, u, y):
    def loss(p):
        h = jax.nn.gelu(x @ p[0])
        h = (h - h.mean(-1, keepdims=True)) * lax.rsqrt(h.var(-1, keepdims=True) + 1e-5)
        return -jnp.take_along_axis(jax.nn.log_softmax(h @ p[1]), y[:, None], 1).mean()
    value, g = jax.value_and_grad(loss)((w, u))
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, (w, u), g)


@case((16, 8), (13, 5))
def constraints(a, b):
    """Cuts that come out even, and such that do not."""
    mesh = MESHES[-1]
    at = lambda v, *s: lax.with_sharding_constraint(v, NamedSharding(mesh, P(*s)))
    one = at(a, "x") * 2
    return at(one @ a.T, None, "x"), at(jnp.sin(b), "x").sum(), at(b * 2, None, "x") @ at(b.T, "x"), at(a[:5], "x") + 1


def draw(rng, mesh, shape):
    """A cut of some dimensions that comes out even."""
    free, spec = list(mesh.axis_names), []
    for size in shape:
        axes = tuple(a for a in rng.permutation(free)[:rng.integers(0, len(free) + 1)]) if free else ()
        parts = int(np.prod([mesh.shape[a] for a in axes], dtype=int))
        if size % parts:
            axes = ()
        free = [a for a in free if a not in axes]
        spec.append(tuple(str(a) for a in axes) or None)
    return NamedSharding(mesh, P(*spec))


def run(f, args, cut):
    os.environ["WEFT_PARTITION"] = "always" if cut else "off"
    jax.clear_caches()  # else it is the program that was compiled before
    compiled, said = told(lambda: jax.jit(f).lower(*args).compile())
    return [np.asarray(a) for a in jax.tree.leaves(compiled(*args))], compiled.memory_analysis(), '"in parts"' in said


def told(f):
    """What f gives, and what the plugin writes meanwhile under WEFT_VERBOSE."""
    os.environ["WEFT_VERBOSE"] = "1"
    before = os.dup(2)
    with tempfile.TemporaryFile("w+") as said:
        os.dup2(said.fileno(), 2)
        try:
            got = f()
        finally:
            os.dup2(before, 2)
            os.close(before)
            del os.environ["WEFT_VERBOSE"]
        said.seek(0)
        return got, said.read()


def differences(name, seed):
    f, shapes, integers, near = CASES[name]
    rng = np.random.default_rng([seed, *name.encode()])
    mesh = MESHES[rng.integers(len(MESHES))] if name != "constraints" else MESHES[-1]
    values = [rng.integers(0, 7, s) if i in integers else rng.standard_normal(s, dtype=np.float32) for i, s in enumerate(shapes)]
    shardings = [draw(rng, mesh, s) for s in shapes]
    args = [jax.device_put(v, s) for v, s in zip(values, shardings)]
    (got, memory, parts), (want, whole, _) = run(f, args, True), run(f, args, False)
    bad = []
    if (memory.argument_size_in_bytes, memory.output_size_in_bytes) != (whole.argument_size_in_bytes, whole.output_size_in_bytes):
        bad.append(f"{name} seed {seed}: a device's arguments and results are counted differently when the program is computed whole")
    for k, (a, b) in enumerate(zip(got, want)):
        a, b = a.astype(np.float64), b.astype(np.float64)
        most = np.abs(np.where(np.isfinite(b), b, 0)).max(initial=1)
        if a.shape != b.shape or not np.allclose(a, b, rtol=0, atol=near * most, equal_nan=True):
            bad.append(f"{name} seed {seed} {[s.spec for s in shardings]} over {dict(mesh.shape)}: result {k} of {a.shape} differs "
                       f"by {np.abs(a - b).max():.2g}")
    return bad, parts


first, count, *only = sys.argv[1:]
bad, cut, ran = [], 0, 0
for name in only or CASES:
    for seed in range(int(first), int(first) + int(count)):
        try:
            more, parts = differences(name, seed)
        except Exception as error:
            more, parts = [f"{name} seed {seed}: {type(error).__name__} {str(error)[:300]}"], False
        bad, cut, ran = bad + more, cut + parts, ran + 1
print(json.dumps({"bad": bad, "cut": cut, "ran": ran}))
