#!/usr/bin/env python3
"""Random calls of jax.lax and jax.numpy, on weft and on JAX's CPU backend, compared.

    random_calls.py [--first SEED] [--count N] [--kinds convolution window ...]

A seed is one call, or the gradient of one: its shapes, element types and parameters are drawn, odd ones among them. What differs, fails or has
another type is printed with its seed, which draws the same again. Whole numbers, and what is only moved, must be equal; the rest is near by the
units in the last place that its kind is given. JAX_PLATFORMS=weft,cpu is set here."""
import argparse
import os
import random
import sys
import typing
import warnings

os.environ["JAX_PLATFORMS"] = "weft,cpu"
warnings.filterwarnings("ignore")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

FLOATS = ["float32", "float32", "float32", "bfloat16", "float16"]
WHOLE = ["int32", "int8", "uint8", "int16", "uint16", "uint32"]
SIZES = [1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 129]


class Case(typing.NamedTuple):
    text: str
    call: typing.Callable
    args: tuple
    units: float = 1  # in the last place, of the largest of the result's elements where there are more than eight; 0: equal
    reference: typing.Callable | None = None  # says the same otherwise, where JAX's CPU backend errs


class Draw(random.Random):
    def some(self, share):
        return self.random() < share

    def shape(self, rank, most):
        while True:
            dims = tuple(self.choice(SIZES) for _ in range(rank))
            if np.prod(dims) <= most:
                return dims

    def array(self, shape, dtype, wild=False):
        """wild: NaN, infinities, zeros of both signs; whole numbers of all sizes."""
        g = np.random.default_rng(self.getrandbits(32))
        if dtype == "bool":
            return g.integers(0, 2, shape).astype(bool)
        if dtype in WHOLE:
            of = np.iinfo(dtype)
            low, high = (of.min, of.max) if wild else (max(of.min, -6), 9)
            return np.asarray(g.integers(low, high, shape, dtype=np.int64, endpoint=True)).astype(dtype)
        a = np.asarray(g.standard_normal(shape))
        if wild and a.size:
            for v in (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30):
                a.reshape(-1)[g.integers(0, a.size)] = v
        return a.astype(jnp.dtype(dtype))


def number(dtype, value):
    return np.asarray(value).astype(jnp.dtype(dtype))


def convolution(r):
    n, dtype = r.randint(1, 3), r.choice(["float32", "float32", "bfloat16", "float16"])
    groups, features, outputs, images = 1, r.choice([1, 2, 3, 8, 16, 17, 32]), r.choice([1, 3, 4, 8, 24, 33]), r.choice([1, 2, 3, 8])
    of_images, form = 1, r.choice(["plain", "plain", "grouped", "depthwise", "batch groups"])
    if form == "grouped":
        groups = r.choice([2, 3, 4])
        outputs *= groups
    elif form == "depthwise":
        groups, features = features, 1
        outputs = groups * r.choice([1, 1, 2])
    elif form == "batch groups":
        of_images = r.choice([2, 3, 4])
        images, outputs = images * of_images, outputs * of_images
    size, window = [r.choice([1, 2, 5, 7, 12, 16, 20]) for _ in range(n)], [r.choice([1, 1, 2, 3, 3, 5, 7]) for _ in range(n)]
    steps, apart, between = ([r.choice([1, 1, 1, 2, 3]) for _ in range(n)] for _ in range(3))
    padding = [[r.randint(-1, 4), r.randint(-1, 4)] for _ in range(n)]
    for i in range(n):  # a window fits
        padding[i][1] += max(0, (window[i] - 1) * apart[i] - (size[i] - 1) * between[i] - sum(padding[i]))
    space = "DHW"[3 - n:]
    order = r.choice([("N" + space + "C", space + "IO"), ("N" + space + "C", space + "IO"), ("NC" + space, "OI" + space), ("C" + space + "N", "I" + space + "O")])
    at = dict(zip(space, size), N=images, C=features * groups), dict(zip(space, window), I=features, O=outputs)
    x, w = (r.array([d[c] for c in o], dtype) for d, o in zip(at, order))
    dims = (*order, order[0])

    def call(x, w):
        return lax.conv_general_dilated(x, w, steps, padding, between, apart, dims, groups, of_images)

    def padded(x, w):  # JAX's CPU backend errs where some padding is negative
        edges = [(*padding[space.index(c)], between[space.index(c)] - 1) if c in space else (0, 0, 0) for c in order[0]]
        return lax.conv_general_dilated(lax.pad(x, number(dtype, 0), edges), w, steps, [(0, 0)] * n, [1] * n, apart, dims, groups, of_images)

    text = (f"convolution {dtype} {x.shape} {w.shape} {dims} steps {steps} padding {padding} dilations {between} {apart} groups {groups} {of_images}")
    units = 300 if dtype == "float32" else 6
    if r.some(0.6):
        return Case(text, call, (x, w), units, padded)
    side, g = r.randint(0, 1), r.array(jax.eval_shape(call, x, w).shape, dtype)
    of = lambda f: lambda x, w, g: jax.vjp(f, x, w)[1](g)[side]  # noqa: E731
    return Case(f"{text} gradient {side}", of(call), (x, w, g), units, of(padded))


def product(r):
    dtype = r.choice(["float32", "float32", "bfloat16", "float16", "int8", "int32"])
    sizes = {kind: [r.choice(SIZES) for _ in range(r.randint(0, 2))] for kind in "klr"}
    sizes["b"] = [r.choice([1, 2, 3, 5]) for _ in range(r.randint(0, 2))]
    if np.prod(sum(sizes.values(), [])) > 1e6:
        return product(r)

    def side(own):
        dims = [(kind, i) for kind in "bk" + own for i in range(len(sizes[kind]))]
        r.shuffle(dims)
        return r.array([sizes[k][i] for k, i in dims], dtype), *([dims.index((kind, i)) for i in range(len(sizes[kind]))] for kind in "kb")

    (x, xk, xb), (y, yk, yb) = side("l"), side("r")
    to = {"int8": r.choice([None, "int32"]), "bfloat16": r.choice([None, "float32"])}.get(dtype)
    return Case(f"product {dtype} {x.shape} {y.shape} contracting {xk} {yk} batch {xb} {yb} to {to}",
                lambda x, y: lax.dot_general(x, y, ((xk, yk), (xb, yb)), preferred_element_type=to), (x, y), 100)


def window(r):
    shape, dtype = r.shape(r.randint(1, 4), 4000), r.choice(FLOATS + ["int32", "int8"])
    f, start = r.choice([(lax.add, 0), (lax.mul, 1), (lax.max, None), (lax.min, None)])
    if start is None:
        of = np.iinfo(dtype) if dtype in WHOLE else None
        start = (of.min if of else -np.inf) if f is lax.max else (of.max if of else np.inf)
    dims, steps = [r.choice([1, 1, 2, 3, 5]) for _ in shape], [r.choice([1, 1, 2, 3]) for _ in shape]
    base, apart = ([r.choice([1, 1, 1, 1, 2]) for _ in shape] for _ in range(2))
    padding = [[r.randint(0, 3), r.choice([0, 1, 2, 30])] for _ in shape]
    for i, n in enumerate(shape):
        padding[i][1] += max(0, (dims[i] - 1) * apart[i] - (n - 1) * base[i] - sum(padding[i]))
    call = lambda x: lax.reduce_window(x, number(dtype, start), f, dims, steps, padding, base, apart)  # noqa: E731
    text, x = f"window {f.__name__} {dtype} {shape} {dims} steps {steps} padding {padding} dilations {base} {apart}", r.array(shape, dtype)
    if dtype in WHOLE or f is lax.mul or max(base + apart) > 1 or r.some(0.6):
        return Case(text, call, (x,), 20)
    return Case(text + " gradient", lambda x, g: jax.vjp(call, x)[1](g)[0], (x, r.array(jax.eval_shape(call, x).shape, dtype)), 20)


def indices(r):
    shape, dtype = r.shape(r.randint(1, 4), 6000), r.choice(FLOATS + WHOLE + ["bool"])
    lists, at, drawn = [], [], r.shape(r.randint(0, 2), 40)
    for n in shape:
        how = r.choice(["list", "list", "one", "slice", "all"])
        if how == "list":
            g = np.random.default_rng(r.getrandbits(32))
            lists.append(g.integers(-n - 1, n + 2, drawn).astype("int32"))
        at.append({"list": len(lists) - 1, "one": np.int32(r.randint(-n, n - 1)), "all": slice(None),
                   "slice": slice(r.randint(0, n // 2), r.randint(n // 2, n), r.choice([1, 1, 2]))}[how])
    where = lambda lists: tuple(lists[i] if type(i) is int else i for i in at)  # noqa: E731
    mode, x = r.choice(["fill", "clip"]), r.array(shape, dtype)
    text = f"indices {dtype} {shape} {mode} {[drawn if type(i) is int else i for i in at]}"
    if r.some(0.4):
        return Case(text, lambda x, *lists: x.at[where(lists)].get(mode=mode), (x, *lists), 0)
    how = "set" if dtype == "bool" else r.choice(["set", "add", "max", "min", "multiply"])
    shape = () if how == "set" else jax.eval_shape(lambda x, *lists: x[where(lists)], x, *lists).shape
    return Case(f"{text} {how}", lambda x, u, *lists: getattr(x.at[where(lists)], how)(u, mode=mode), (x, r.array(shape, dtype), *lists), 60)


def moves(r):
    dtype = r.choice(FLOATS + WHOLE + ["bool"])
    x, steps = r.array(r.shape(r.randint(1, 4), 3000), dtype), []
    at = x.shape
    for _ in range(r.randint(1, 6)):
        n, d = len(at), r.randrange(len(at))
        low = [r.randint(-1 if s > 2 else 0, 3) for s in at]
        begin = [r.randint(0, s // 2) for s in at]
        edges, end = [(lo, r.randint(0, 3), r.randint(0, 2)) for lo in low], [r.randint(b, s) for b, s in zip(begin, at)]
        order, rows = r.sample(range(n), n), r.choice([i for i in range(1, 65) if np.prod(at, dtype=int) % i == 0])
        step = r.choice([
            lambda x, e=edges: lax.pad(x, jnp.zeros((), x.dtype), e), lambda x, o=order: jnp.transpose(x, o), lambda x, d=d: lax.rev(x, [d]),
            lambda x, b=begin, e=end: lax.slice(x, b, e), lambda x, d=d: jnp.concatenate([x, lax.rev(x, [d])], d),
            lambda x, k=rows: x.reshape(k, x.size // k), lambda x, d=d: jnp.repeat(x, 2, d), lambda x, d=d: jnp.roll(x, 3, d),
            lambda x: x[None], lambda x, b=begin: lax.dynamic_update_slice(x, x * 0 if x.dtype != bool else ~x, b)])
        after = jax.eval_shape(step, jax.ShapeDtypeStruct(at, dtype)).shape
        if 0 < np.prod(after, dtype=int) <= 60000:
            steps.append(step)
            at = after

    def call(x):
        for step in steps:
            x = step(x)
        return x
    return Case(f"moves {dtype} {x.shape} {len(steps)} of them to {at}", call, (x,), 0)


def order(r):
    shape, dtype = r.shape(r.randint(1, 3), 6000), r.choice(FLOATS + WHOLE)
    d, x, k = r.randrange(len(shape)), r.array(shape, dtype, r.some(0.5)), r.randint(1, shape[-1])
    name, call = r.choice([("sort", lambda x: jnp.sort(x, axis=d)), ("argsort", lambda x: jnp.argsort(x, axis=d, stable=True)),
                           ("argmax", lambda x: (jnp.argmax(x, axis=d), jnp.argmin(x))), (f"top {k}", lambda x: lax.top_k(x, k)),
                           ("sort two", lambda x: lax.sort((x, lax.iota(jnp.int32, x.size).reshape(x.shape)), dimension=d, num_keys=1))])
    return Case(f"{name} {dtype} {shape} along {d}", call, (x,), 0)


def reductions(r):
    shape, dtype = r.shape(r.randint(1, 4), 20000), r.choice(FLOATS + WHOLE)
    axes = tuple(r.sample(range(len(shape)), r.randint(1, len(shape))))
    f = r.choice([jnp.sum, jnp.max, jnp.min, jnp.any] + ([jnp.mean, jnp.var, jax.nn.logsumexp, jax.nn.softmax] if dtype in FLOATS else [jnp.prod]))
    x = r.array(shape, dtype, f in (jnp.max, jnp.min) and r.some(0.5))
    if dtype in FLOATS:
        x[np.isnan(x)] = 0  # JAX's CPU backend loses NaN among infinities
    text, units = f"{f.__name__} {dtype} {shape} {axes}", 60 if dtype == "float32" else 6
    if dtype != "float32" or f in (jnp.max, jnp.min, jnp.any) or r.some(0.6):
        return Case(text, lambda x: f(x, axis=axes), (x,), units)
    return Case(text + " gradient", jax.grad(lambda x: (f(jnp.sin(x), axis=axes) ** 2).sum()), (x,), 200)


def elements(r):
    if r.some(0.4):
        dtype, pairs = r.choice(WHOLE), [jnp.add, jnp.multiply, jnp.floor_divide, jnp.remainder, lax.div, lax.rem, jnp.bitwise_xor, lax.shift_left,
                                         lax.shift_right_logical, lax.shift_right_arithmetic, jnp.minimum, jnp.less]
        alone = [jnp.abs, jnp.negative, jnp.invert, lax.population_count, lax.clz, jnp.sign]
    else:
        dtype, pairs = r.choice(FLOATS), [jnp.add, jnp.multiply, jnp.divide, jnp.maximum, jnp.arctan2, jnp.fmod, jnp.copysign, jnp.equal, jnp.less]
        alone = [jnp.sin, jnp.exp, jnp.expm1, jnp.log1p, jnp.tanh, jax.nn.sigmoid, jnp.sqrt, lax.rsqrt, jnp.cbrt, jnp.floor, jnp.round, lax.erf,
                 jnp.arctan, jnp.isfinite, jnp.square, jnp.log]
    shape = r.shape(r.randint(0, 4), 4000)
    x, y, f, g = r.array(shape, dtype, r.some(0.5)), r.array(shape if r.some(0.7) else (), dtype, r.some(0.4)), r.choice(alone), r.choice(pairs)
    to = r.choice(FLOATS + WHOLE)
    return Case(f"elements {f.__name__} {g.__name__} {dtype} {shape} {y.shape} to {to}", lambda x, y: (f(x), g(x, y), x.astype(to)), (x, y), 8)


def loops(r):
    n, shape, dtype = r.choice([1, 2, 5, 9]), r.shape(r.randint(1, 2), 400), r.choice(["float32", "float32", "bfloat16", "int32"])
    step = r.choice([lambda c, x: (c + x) * 2 // 3 if dtype == "int32" else jnp.tanh(c + x), lambda c, x: jnp.where(x > 0, c, x - c)])
    rows, count = r.array((n, *shape), dtype), np.arange(n, dtype=np.int32)
    until = lambda x, m: lax.while_loop(lambda s: s[0] < m, lambda s: (s[0] + 1, step(s[1], x)), (jnp.int32(0), x))  # noqa: E731
    name, call = r.choice([("scan", lambda xs, m: lax.scan(lambda c, x: (step(c, x), c * 2), xs[0], xs, reverse=n % 2 == 0)),
                           ("while", lambda xs, m: until(xs[0], m[-1])), ("while of each", lambda xs, m: jax.vmap(until)(xs, m)),
                           ("fori", lambda xs, m: lax.fori_loop(0, n, lambda i, c: c.at[i].set(step(c[i], c[-i])), xs)),
                           ("switch", lambda xs, m: lax.switch(m[-1], [lambda x: x + x, lambda x: step(x, x), lambda x: x * 0], xs)),
                           ("associative", lambda xs, m: lax.associative_scan(jnp.add, xs))])
    return Case(f"{name} {dtype} {rows.shape}", call, (rows, count), 60 if dtype == "float32" else 20)


KINDS = {f.__name__: f for f in (convolution, product, window, indices, moves, order, reductions, elements, loops)}


def difference(got, want, units):
    """None, or what differs."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    if got.dtype.kind in "biu":
        bad = got != want
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        scale = np.abs(b) if units <= 8 else np.maximum(np.abs(b), np.abs(b[finite]).max(initial=0))
        with np.errstate(invalid="ignore"):
            near = finite & (np.abs(a - b) <= units * float(jnp.finfo(got.dtype).eps) * scale)
        bad = ~(near | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not bad.any():
        return None
    i = tuple(int(k) for k in np.argwhere(bad)[0])
    return f"{bad.sum()} of {bad.size} differ: {got[i]} at {i}, not {want[i]}"


def check(seed, kinds):
    """None, or what is wrong with the call of this seed."""
    r = Draw(seed)
    case = KINDS[r.choice(kinds)](r)
    run = lambda f, device: [np.asarray(v) for v in jax.tree.leaves(jax.jit(lambda *a: f(*a))(*jax.device_put(case.args, device)))]  # noqa: E731
    try:
        want = run(case.reference or case.call, jax.devices("cpu")[0])
    except jax.errors.JaxRuntimeError as e:  # some products of narrow types it does not have on every host
        return None if "UNIMPLEMENTED" in str(e) else f"seed {seed}: {case.text}: JAX's CPU backend: {str(e)[:300]}"
    try:
        got = run(case.call, jax.devices("weft")[0])
    except Exception as e:  # whatever it is, it is to be told with the seed
        return f"seed {seed}: {case.text}: {str(e)[:300]}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        if text := difference(g, w, case.units):
            return f"seed {seed}: {case.text}: result {i}: {text}"
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--first", type=int, default=1)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    a = p.parse_args()
    wrong = 0
    for seed in range(a.first, a.first + a.count):
        if text := check(seed, a.kinds):
            wrong += 1
            print(text, flush=True)
    print(f"{a.count} calls, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
