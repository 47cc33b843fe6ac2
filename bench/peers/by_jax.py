"""JAX, on whichever platform JAX_PLATFORMS names: weft's plugin or XLA's CPU backend. A jitted step, its state donated."""
import functools
import math
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

array, exp, tanh, concat, transpose, reshape, mean = jnp.asarray, jnp.exp, jnp.tanh, jnp.concatenate, jnp.transpose, jnp.reshape, jnp.mean
relu, silu, relu6, matmul, sort = jax.nn.relu, jax.nn.silu, jax.nn.relu6, jnp.matmul, jnp.sort
softmax, cumsum = functools.partial(jax.nn.softmax, axis=-1), functools.partial(jnp.cumsum, axis=-1)


BACKEND_S = []  # what JAX waited for its backends' compilers


def open(threads):
    jax.devices()
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: BACKEND_S.append(seconds) if event.endswith("/backend_compile_duration") else None)
    return {"jax": jax.__version__}


# ---- operations ----------------------------------------------------------------------------------------------------------


LAYOUT = {4: ("NHWC", "HWIO", "NHWC"), 5: ("NDHWC", "DHWIO", "NDHWC")}


def conv(p, x, stride=1, pad=0):
    k = p["k"] if "k" in p else p["kd"]
    groups = 1 if "k" in p else k.shape[-1]
    sides = x.ndim - 2
    y = lax.conv_general_dilated(x, k, (stride,) * sides, [(pad, pad)] * sides, dimension_numbers=LAYOUT[x.ndim],
                                 feature_group_count=groups)
    return y + p["b"] if "b" in p else y


def conv_transposed(p, x, stride, pad):
    k, sides = p["kt"], x.ndim - 2
    edge = k.shape[0] - 1 - pad
    return lax.conv_transpose(x, jnp.flip(k, range(sides)), (stride,) * sides, [(edge, edge)] * sides, dimension_numbers=LAYOUT[x.ndim])


def max_pool(x, size, stride, pad=0):
    sides = x.ndim - 2
    return lax.reduce_window(x, -jnp.inf, lax.max, (1,) + (size,) * sides + (1,), (1,) + (stride,) * sides + (1,),
                             ((0, 0),) + ((pad, pad),) * sides + ((0, 0),))


def spatial_max(x): return jnp.max(x, (1, 2))
def spatial_mean(x): return jnp.mean(x, (1, 2))
def flatten(x): return x.reshape(x.shape[0], -1)
def image(x, h, w, c): return x.reshape(x.shape[0], h, w, c)
def concat_channels(xs): return jnp.concatenate(xs, -1)
def split(x, n): return jnp.split(x, n, -1)
def leaky_relu(x): return jax.nn.leaky_relu(x, 0.2)
def gelu(x, exact): return jax.nn.gelu(x, approximate=not exact)
def rows(table, ids): return table[ids]
def embedding(p, ids): return p["table"][ids]
def tied(p, x): return x @ p["table"].T
def segment_sum(x, ids, n): return jax.ops.segment_sum(x, ids, n)
def random_normal(key, n): return jax.random.normal(key, (n,))
def mean_square(x, y): return jnp.mean(jnp.square((x - y).astype(jnp.float32)))


def dense(p, x):
    y = x @ p["w"]
    return y + p["b"] if "b" in p else y


def batch_norm(p, x):
    z = x.astype(jnp.float32)
    places = tuple(range(x.ndim - 1))
    m, square = jnp.mean(z, places), jnp.mean(z * z, places)
    return ((z - m) * (lax.rsqrt(square - m * m + 1e-5) * p["gain"]) + p["bias"]).astype(x.dtype)


def layer_norm(p, x):
    z = x.astype(jnp.float32)
    d = z - jnp.mean(z, -1, keepdims=True)
    return (d * lax.rsqrt(jnp.mean(d * d, -1, keepdims=True) + 1e-5) * p["gain"] + p["bias"]).astype(x.dtype)


def group_norm(p, x, groups):
    z = x.astype(jnp.float32).reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    d = z - jnp.mean(z, (1, 3), keepdims=True)
    y = d * lax.rsqrt(jnp.mean(d * d, (1, 3), keepdims=True) + 1e-5)
    return (y.reshape(x.shape) * p["gain"] + p["bias"]).astype(x.dtype)


def rms_norm(p, x):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * p["gain"]


def attention(q, k, v, causal):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) * (1 / math.sqrt(q.shape[-1]))
    if causal:
        s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, jnp.finfo(s.dtype).min)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s, -1), v)


def lstm(p, x, width):
    def cell(carry, gates):
        h, c = carry
        i, f, g, o = jnp.split(gates + h @ p["h"]["w"], 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    zero = jnp.zeros((x.shape[0], width), x.dtype)
    _, y = lax.scan(cell, (zero, zero), dense(p["x"], x.transpose(1, 0, 2)))
    return y.transpose(1, 0, 2)


def gru(p, x, width):
    def cell(h, gates):
        (r, z, n), (hr, hz, hn) = jnp.split(gates, 3, -1), jnp.split(h @ p["h"]["w"], 3, -1)
        r, z = jax.nn.sigmoid(r + hr), jax.nn.sigmoid(z + hz)
        h = (1 - z) * jnp.tanh(n + r * hn) + z * h
        return h, h
    _, y = lax.scan(cell, jnp.zeros((x.shape[0], width), x.dtype), dense(p["x"], x.transpose(1, 0, 2)))
    return y.transpose(1, 0, 2)


def channels(fn, x): return fn(x)  # fn wants them last
def each_channel(x, v): return x + v[:, None, None, :]  # v: [batch, channels]
def twice_as_large(x): return jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
def loop(n, step, state): return lax.fori_loop(0, n, lambda _, s: step(*s), state)
def argmin(x): return jnp.argmin(x, -1)
def total(x, axis): return jnp.sum(x, axis)
def counts(ids, n): return jax.ops.segment_sum(jnp.ones(ids.shape, jnp.float32), ids, n)
def cholesky(x): return jnp.linalg.cholesky(x)
def solve_lower(low, y): return jax.scipy.linalg.solve_triangular(low, y, lower=True)
def diagonal(x): return jnp.diagonal(x)
def unit(n): return jnp.eye(n)
def put_row(cache, row, at): return lax.dynamic_update_slice_in_dim(cache, row, at, 2)
def lower_triangle(x): return x[:, *np.tril_indices(x.shape[1], -1)]
sigmoid, softplus, stopped, minimum, clip = jax.nn.sigmoid, jax.nn.softplus, lax.stop_gradient, jnp.minimum, jnp.clip
def segment_max(x, ids, n): return jax.ops.segment_max(x, ids, n)
def scan(step, state, xs): return lax.scan(step, state, xs)[1]
def log_prob(logits, ids): return jnp.take_along_axis(jax.nn.log_softmax(logits), ids[..., None], -1)[..., 0]
log, sin, cos, sqrt, where, maximum, abs_, stack = jnp.log, jnp.sin, jnp.cos, jnp.sqrt, jnp.where, jnp.maximum, jnp.abs, jnp.stack


def logistic_loss(logits, labels):
    return jnp.mean(jnp.logaddexp(0.0, logits) - labels * logits)


def conv_causal(p, x):
    k = p["kc"]
    return lax.conv_general_dilated(x, k, (1,), [(k.shape[0] - 1, 0)], dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=k.shape[-1])


def selective_scan(u, time, decay, write, read):
    def step(state, now):
        u, time, write, read = now
        state = jnp.exp(time[..., None] * decay) * state + (time * u)[..., None] * write[:, None, :]
        return state, jnp.sum(state * read[:, None, :], -1)
    first = jnp.zeros((u.shape[0], u.shape[2], decay.shape[1]), u.dtype)
    return lax.scan(step, first, tuple(x.swapaxes(0, 1) for x in (u, time, write, read)))[1].swapaxes(0, 1)


def ctc(logits, labels):
    """All recordings and all labels are of one length; 0 is the blank."""
    logs = jax.nn.log_softmax(logits)
    n, never = 2 * labels.shape[1] + 1, -1e30
    with_blanks = jnp.zeros((labels.shape[0], n), labels.dtype).at[:, 1::2].set(labels)
    each = jnp.take_along_axis(logs, jnp.broadcast_to(with_blanks[:, None], (*logs.shape[:2], n)), -1).swapaxes(0, 1)
    may_skip = jnp.pad((with_blanks[:, 2:] != with_blanks[:, :-2]) & (with_blanks[:, 2:] != 0), ((0, 0), (2, 0)))

    def later(a, by): return jnp.pad(a, ((0, 0), (by, 0)), constant_values=never)[:, :n]

    def step(a, now):
        return jax.nn.logsumexp(jnp.stack([a, later(a, 1), jnp.where(may_skip, later(a, 2), never)]), 0) + now, None
    a, _ = lax.scan(step, jnp.where(jnp.arange(n) < 2, each[0], never), each[1:])
    return -jnp.mean(jnp.logaddexp(a[:, -1], a[:, -2]))


def spectral(p, x, modes):
    """A product of the lowest frequencies with weights of their own; p's weights: [2 corners, modes, modes, in, out]."""
    w = lax.complex(p["real"], p["imag"])
    f = jnp.fft.rfft2(x, axes=(1, 2))
    low = [jnp.einsum("bxyi,xyio->bxyo", f[:, rows, :modes], w[k]) for k, rows in enumerate((slice(modes), slice(-modes, None)))]
    gap = jnp.zeros((x.shape[0], x.shape[1] - 2 * modes, modes, w.shape[-1]), f.dtype)
    kept = jnp.concatenate([low[0], gap, low[1]], 1)
    kept = jnp.pad(kept, ((0, 0), (0, 0), (0, f.shape[2] - modes), (0, 0)))
    return jnp.fft.irfft2(kept, x.shape[1:3], axes=(1, 2))


def experts(p, x, chosen):
    """Each row's `chosen` best experts, weighted by a softmax of their scores. Rows in order of their experts, a product for each."""
    best, ids = lax.top_k(x @ p["gate"]["w"], chosen)
    weights, ids = jax.nn.softmax(best, -1).reshape(-1, 1), ids.reshape(-1)
    order = jnp.argsort(ids)
    sizes = jnp.bincount(ids, length=p["up"]["each"].shape[0]).astype(jnp.int32)
    y = lax.ragged_dot(x[order // chosen], p["up"]["each"], sizes)
    y = lax.ragged_dot(jax.nn.gelu(y), p["down"]["each"], sizes) * weights[order]
    return jax.ops.segment_sum(y, order // chosen, x.shape[0])


def cross_entropy(logits, labels):
    logits = logits.astype(jnp.float32)
    picked = jnp.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - picked)


# ---- steps ---------------------------------------------------------------------------------------------------------------


def update(o, params, grads, slots):
    if o["kind"] == "sgd":
        return jax.tree.map(lambda p, g: p - o["lr"] * g, params, grads), slots
    if o["kind"] == "momentum":
        grads = jax.tree.map(lambda g, p: g + o["decay"] * p, grads, params)
        slots = jax.tree.map(lambda m, g: o["momentum"] * m + g, slots, grads)
        return jax.tree.map(lambda p, m, g: p - o["lr"] * (g + o["momentum"] * m), params, slots, grads), slots
    m, v, t = slots
    t = t + 1
    m = jax.tree.map(lambda m, g: o["beta1"] * m + (1 - o["beta1"]) * g, m, grads)
    v = jax.tree.map(lambda v, g: o["beta2"] * v + (1 - o["beta2"]) * g * g, v, grads)
    a, b = 1 - o["beta1"] ** t, 1 - o["beta2"] ** t
    params = jax.tree.map(lambda p, m, v: p - o["lr"] * (m / a) / (jnp.sqrt(v / b) + o["eps"]), params, m, v)
    return params, (m, v, t)


def halve(tree):
    return jax.tree.map(lambda x: x.astype(jnp.bfloat16) if x.dtype == jnp.float32 else x, tree)


def flops_of(jaxpr):
    """Multiplications and additions of the matrix products and convolutions in it."""
    total = 0.0
    for e in jaxpr.eqns:
        if e.primitive.name == "dot_general":
            (contract, _), _ = e.params["dimension_numbers"]
            total += 2.0 * e.outvars[0].aval.size * math.prod(e.invars[0].aval.shape[d] for d in contract)
        elif e.primitive.name == "conv_general_dilated":
            k = e.params["dimension_numbers"].rhs_spec
            one = e.invars[1].aval.size / e.invars[1].aval.shape[k[0]]
            total += 2.0 * e.outvars[0].aval.size * one / math.prod(e.params["lhs_dilation"])
        inner = [v for x in e.params.values() for v in (x if isinstance(x, (tuple, list)) else [x])]
        for j in inner:
            j = getattr(j, "jaxpr", j)
            if hasattr(j, "eqns"):
                total += flops_of(j) * (e.params.get("length", 1) if e.primitive.name == "scan" else 1)
    return total


def size_of(tree):
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def training(work):
    """The step as a function of (state, *batch), and those."""
    import by_jax as F
    params, batch = work.values()
    o = work.optimizer
    zeros = lambda: jax.tree.map(np.zeros_like, params)
    slots = {"adam": lambda: (zeros(), zeros(), np.float32(0)), "momentum": zeros, "sgd": tuple}[o["kind"]]()

    def loss(p, *batch):
        return work.net.loss(F, *((halve(p), *halve(batch)) if work.bf16 else (p, *batch)))

    def step(state, *batch):
        value, grads = jax.value_and_grad(loss)(state[0], *batch)
        return update(o, state[0], grads, state[1]), value
    return step, (params, slots), batch


def operation(work):
    import by_jax as F
    fn = functools.partial(work.fn, F)
    if work.grad:
        fn = jax.grad(lambda *a: jnp.sum(jnp.square(work.fn(F, *a))), tuple(range(work.grad)))
    return fn, work.values()


def program(work):
    """-> (what is jitted, its arguments, which of them it may have)"""
    if hasattr(work, "net"):
        step, state, batch = training(work)
        return step, (state, *batch), (0,)
    fn, inputs = operation(work)
    return fn, halve(inputs) if work.bf16 else inputs, ()


def compile_only(work):
    fn, args, given_up = program(work)
    jax.jit(fn, donate_argnums=given_up).lower(*shapes_of(args)).compile()


def shapes_of(tree):
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), tree)


class Jitted:
    """What is jitted, compiled ahead of its first call (which finds it compiled) to see what of that call is the compiler's."""

    def __init__(self, fn, given_up):
        self.fn, self.spent = jax.jit(fn, donate_argnums=given_up), {}

    def __call__(self, *args):
        if not self.spent:
            t = time.perf_counter()
            lowered = self.fn.lower(*args)
            BACKEND_S.clear()
            t, lower = time.perf_counter(), time.perf_counter() - t
            lowered.compile()
            self.spent = {"lower_s": lower, "compiler_s": time.perf_counter() - t, "backend_s": sum(BACKEND_S)}
        return self.fn(*args)


def prepare(work, mode):
    fn, args, given_up = program(work)
    shapes = shapes_of(args)
    jitted = Jitted(fn, given_up)
    kept, rest = None, jax.block_until_ready(jax.device_put(args))
    if not given_up:
        step = lambda: jax.block_until_ready(jitted(*rest))
        moved = size_of(args) + size_of(jax.eval_shape(fn, *shapes))
        return step, lambda out: mean_size([np.asarray(x) for x in jax.tree.leaves(out)]), lambda: {
            "flops": work.flops, "bytes": moved, **jitted.spent}
    kept, *rest = rest
    # parameters and slots are read and written, gradients written
    moved = size_of(shapes[0][0]) * {"adam": 7, "momentum": 5, "sgd": 3}[work.optimizer["kind"]]
    del args

    def step():
        nonlocal kept
        kept, value = jitted(kept, *rest)
        jax.block_until_ready(kept)
        return value
    return step, float, lambda: {"bytes": moved, "flops": flops_of(jax.make_jaxpr(fn)(*shapes).jaxpr), **jitted.spent}


def mean_size(arrays):
    return float(sum(np.abs(x.astype(np.float64)).mean() for x in arrays))
