#!/usr/bin/env python3
"""Random programs of many operations: JAX traces them, its CPU backend says what is right, and `weft run` computes them in every way it has.

    random_programs.py [--first SEED] [--count N] [--ways interp cpu ...] [--show]

A seed draws shapes, element types and operations, loops, branches, sorts and scatters among them. Every number is a whole one of a known bound, also in
floats, which hold it exactly, so that all results must be equal to the bit, in whatever order they are summed. What differs is printed with its seed,
which draws the same again; --show prints the program."""
import argparse
import functools
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import typing

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

jax.config.update("jax_enable_x64", True)
ROOT = pathlib.Path(__file__).resolve().parents[2]
WEFT = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")) / "weft"

# How a program is computed: the device and what the environment says. The repeated one changes over to generated code on its way.
WAYS = {"interp": ("interp", {}, 1), "cpu": ("cpu", {}, 1), "code": ("cpu", {"WEFT_VINTERP": "off"}, 1), "vinterp": ("cpu", {"WEFT_VINTERP": "always"}, 1),
        "tier_up": ("cpu", {}, 60), "narrow": ("cpu", {"WEFT_VECTOR_BITS": "128", "WEFT_VINTERP": "off"}, 1),
        "halves": ("cpu:2", {"WEFT_PARTITION": "always"}, 1)}
# The largest whole number up to which an element type has all of them.
EXACT = {"float8_e4m3fn": 16, "bfloat16": 256, "float16": 2048, "float32": 2**24, "float64": 2**53}
INTEGERS = ["int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
TYPES = ["bool", *INTEGERS, "int32", "int32", *EXACT, "float32", "float32", "float32"]
SIZES = [1, 1, 2, 2, 3, 4, 5, 7, 8, 8, 9, 16, 17, 31, 32, 33]


class Value(typing.NamedTuple):
    at: int  # where it stands in the program's values
    shape: tuple
    dtype: str
    most: int  # of its elements' magnitudes; of floats alone

    @property
    def is_float(self):
        return self.dtype in EXACT


class Program:
    """Values 0 to n_in - 1 are arguments, the others what the steps make, in order."""

    def __init__(self, arguments):
        self.n_in, self.values, self.steps = len(arguments), list(arguments), []

    def run(self, *arguments):
        env = list(arguments)
        for call, operands in self.steps:
            env.append(call(*[env[v.at] for v in operands]))
        return env


class TooLarge(Exception):
    """A value of more elements than programs shall have: what was begun is dropped."""


def popcount(x):
    """JAX's CPU backend counts the bits of an int4 as of an int8."""
    return lax.population_count(x.astype("uint8") & 15).astype(x.dtype) if x.dtype == "int4" else lax.population_count(x)


def integers(dtype):
    of = jnp.iinfo(dtype)
    return int(of.min), int(of.max)


class Draw(random.Random):
    """Draws a program; `depth` says how deep loops and branches may nest."""

    most_elements = 600

    def shape(self, rank=None):
        rank = self.choice([0, 1, 1, 2, 2, 2, 3, 3, 4]) if rank is None else rank
        while True:
            dims = tuple(self.choice(SIZES) for _ in range(rank))
            if np.prod(dims) <= self.most_elements:
                return dims

    def array(self, shape, dtype):
        g = np.random.default_rng(self.getrandbits(32))
        if dtype == "bool":
            return g.integers(0, 2, shape).astype(bool)
        if dtype in EXACT:
            return np.asarray(g.integers(-3, 4, shape)).astype(jnp.dtype(dtype))
        low, high = integers(dtype)
        if self.random() < 0.7:
            low, high = max(low, -5), min(high, 5)
        return np.asarray(g.integers(low, high, shape, dtype=np.int64 if low < 0 else np.uint64, endpoint=True)).astype(jnp.dtype(dtype))

    def program(self, arguments, steps, depth):
        outer, self.p = getattr(self, "p", None), Program(arguments)
        while len(self.p.steps) < steps:
            kinds = FLAT if depth == 0 or self.random() < 0.8 else DEEP
            kind, had, inside = self.choice(kinds), len(self.p.steps), self.p
            try:
                kind(self, depth - 1) if kinds is DEEP else kind(self)
            except TooLarge:
                self.p = inside
                del self.p.steps[had:], self.p.values[had + self.p.n_in:]
        made, self.p = self.p, outer
        return made

    def pick(self, like=lambda v: True):
        """A value, rather one that is new; None where there is none of that kind."""
        some = [v for v in self.p.values if like(v)]
        return self.choice(some[-6:] if self.random() < 0.6 else some) if some else None

    def add(self, call, *operands, most=0):
        specs = [jax.ShapeDtypeStruct(v.shape, jnp.dtype(v.dtype)) for v in operands]
        made = jax.eval_shape(call, *specs)
        if made.size > 4 * self.most_elements:
            raise TooLarge
        self.p.steps.append((call, operands))
        self.p.values.append(Value(len(self.p.values), made.shape, str(made.dtype), most))
        return self.p.values[-1]

    def small(self, v, most):
        """The value, or where it may be larger what is left of it when cut at `most`, which is at most 3."""
        if not v.is_float or v.most <= most:
            return v
        cut = min(3, most)
        return self.add(lambda x: lax.clamp(jnp.asarray(-cut, x.dtype), x, jnp.asarray(cut, x.dtype)), v, most=cut)

    def cast(self, v, dtype):
        if v.dtype == dtype:
            return v
        if dtype == "bool":
            return self.add(lambda x: x != jnp.zeros((), x.dtype), v)
        if dtype in EXACT and v.dtype in INTEGERS:
            return self.add(lambda x: lax.rem(x, jnp.full_like(x, 5)).astype(dtype), v, most=4)
        if v.is_float:
            v = self.small(v, 3)
            if dtype.startswith("u"):
                v = self.add(lax.abs, v, most=3)
        return self.add(lambda x: lax.convert_element_type(x, jnp.dtype(dtype)), v, most=max(1, v.most) if dtype in EXACT else 0)

    def fit(self, v, shape, dtype):
        """Its elements, in another shape and type."""
        v, n = self.cast(v, dtype), int(np.prod(shape))
        if v.shape == tuple(shape):
            return v
        copies = -(-n // int(np.prod(v.shape)))
        return self.add(lambda x: jnp.tile(x.reshape(-1), copies)[:n].reshape(shape), v, most=v.most)

    def like(self, v):
        """A value of the same shape and type."""
        same = self.pick(lambda w: w.shape == v.shape and w.dtype == v.dtype)
        return same if self.random() < 0.6 else self.fit(self.pick(), v.shape, v.dtype)

    def index(self):
        """A scalar that data decide, any number."""
        v = self.cast(self.pick(), "int32")
        return self.add(lambda x: x.reshape(-1)[0], v)


# ---- operations ----------------------------------------------------------------------------------------------------------------


def binary(d):
    a = d.pick()
    b = d.like(a)
    if a.dtype == "bool":
        return d.add(d.choice([lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor]), a, b)
    if not a.is_float:
        return d.add(d.choice([lax.add, lax.sub, lax.mul, lax.div, lax.rem, lax.max, lax.min, lax.bitwise_and, lax.bitwise_xor, lax.shift_left,
                               lax.shift_right_logical, lax.shift_right_arithmetic, jnp.floor_divide]), a, b)
    limit, kind = EXACT[a.dtype], d.choice([lax.add, lax.sub, lax.mul, lax.max, lax.min])
    if kind is lax.mul:
        a, b = (d.small(v, int(limit**0.5)) for v in (a, b))
        return d.add(kind, a, b, most=a.most * b.most)
    a, b = (d.small(v, limit // 2) for v in (a, b))
    return d.add(kind, a, b, most=a.most + b.most)


def unary(d):
    a = d.pick()
    if a.dtype == "bool":
        return d.add(lax.bitwise_not, a)
    if not a.is_float:
        return d.add(d.choice([lax.neg, lax.sign, lax.bitwise_not, popcount, lax.clz]), a)
    if d.random() < 0.3:
        a = d.small(a, EXACT[a.dtype] // 4)
        return d.add(d.choice([lambda x: lax.floor(x * 0.5), lambda x: lax.ceil(x * 0.5), lambda x: lax.round(x * 0.5, lax.RoundingMethod.TO_NEAREST_EVEN)]), a, most=a.most)
    return d.add(d.choice([lax.neg, lax.abs, lax.sign]), a, most=max(1, a.most))


def convert(d):
    return d.cast(d.pick(), d.choice(TYPES))


def select(d):
    a = d.pick()
    b, c = d.like(a), d.fit(d.pick(), a.shape, "bool")
    return d.add(lax.select, c, a, b, most=max(a.most, b.most))


def compare(d):
    a = d.pick()
    return d.add(d.choice([lax.eq, lax.lt, lax.ge]), a, d.like(a))


def moved(d):
    """What only moves elements."""
    a = d.pick(lambda v: v.shape)
    if a is None:
        return None
    rank, k = len(a.shape), d.randrange(len(a.shape))
    order, reverse = d.sample(range(rank), rank), d.sample(range(rank), d.randint(1, rank))
    start = [d.randrange(n) for n in a.shape]
    end = [d.randint(s + 1, n) for s, n in zip(start, a.shape)]
    step, low = [d.choice([1, 1, 2, 3]) for _ in start], [(d.randint(-1, 2), d.randint(0, 2), d.choice([0, 0, 1])) for _ in start]
    calls = [lambda x: lax.transpose(x, order), lambda x: lax.rev(x, reverse), lambda x: lax.slice(x, start, end, step), lambda x: jnp.roll(x, 3, k),
             lambda x: x.reshape(x.shape[::-1]), lambda x: jnp.broadcast_to(x[None], (2, *x.shape)), lambda x: jnp.concatenate([x, x[:1], x], 0)]
    if all(n + lo + hi > 0 for n, (lo, hi, _) in zip(a.shape, low)):
        calls.append(lambda x: lax.pad(x, jnp.ones((), x.dtype), low))
    return d.add(d.choice(calls), a, most=max(1, a.most))


def dynamic(d):
    a = d.pick(lambda v: v.shape)
    if a is None:
        return None
    i, sizes = d.index(), [d.randint(1, n) for n in a.shape]
    b = d.fit(d.pick(), tuple(sizes), a.dtype)
    rank = len(sizes)
    if d.random() < 0.5:
        return d.add(lambda x, i: lax.dynamic_slice(x, [i] * rank, sizes), a, i, most=a.most)
    return d.add(lambda x, y, i: lax.dynamic_update_slice(x, y, [i] * rank), a, b, i, most=max(a.most, b.most))


def indexed(d):
    """Gathers and scatters by numbers that data decide; those beyond the end are left out, or cut."""
    a = d.pick(lambda v: v.shape and v.dtype != "bool")
    if a is None:
        return None
    n, many = a.shape[0], d.choice([1, 3, 8, 17])
    at = d.fit(d.pick(), (many,), "int32")
    mode = d.choice(["clip", "fill"])
    if d.random() < 0.5:
        return d.add(lambda x, i: x.at[jnp.abs(i) % (n + 1)].get(mode=mode, fill_value=1), a, at, most=max(1, a.most))
    b = d.fit(d.pick(), (many, *a.shape[1:]), a.dtype)
    how = d.choice(["add", "max", "min", "multiply"] if not a.is_float else ["add", "max", "min"])
    a, b = (d.small(v, EXACT[v.dtype] // (many + 1)) if v.is_float else v for v in (a, b))
    return d.add(lambda x, i, y: getattr(x.at[jnp.abs(i) % (n + 1)], how)(y, mode="drop"), a, at, b, most=a.most + many * b.most)


def summed(d):
    """Reductions, running sums and windows."""
    a = d.pick(lambda v: v.shape and v.dtype != "bool")
    if a is None:
        return None
    axes, k = d.sample(range(len(a.shape)), d.randint(1, len(a.shape))), d.randrange(len(a.shape))
    many = int(np.prod(a.shape))
    kind = d.choice(["max", "min", "sum", "arg", "running", "window"])
    if kind in ("max", "min"):
        return d.add(lambda x: (jnp.max if kind == "max" else jnp.min)(x, axes), a, most=a.most)
    if kind == "arg":
        return d.add(lambda x: lax.argmax(x, k, jnp.int32), a)
    if a.is_float and EXACT[a.dtype] < many:
        return None
    a = d.small(a, EXACT[a.dtype] // many) if a.is_float else a
    if kind == "sum":
        return d.add(lambda x: lax.reduce(x, jnp.zeros((), x.dtype), lax.add, axes), a, most=a.most * many)
    if kind == "running":
        return d.add(lambda x: lax.cumsum(x, k, reverse=many % 2 == 0), a, most=a.most * many)
    window, pads = [d.randint(1, 3) for _ in a.shape], [(d.randint(0, 1), d.randint(0, 1)) for _ in a.shape]
    if any(n + lo + hi < w for n, (lo, hi), w in zip(a.shape, pads, window)):
        return None
    steps = [d.randint(1, 2) for _ in window]
    return d.add(lambda x: lax.reduce_window(x, jnp.zeros((), x.dtype), lax.add, window, steps, pads), a, most=a.most * many)


def product(d):
    a = d.pick(lambda v: len(v.shape) >= 1 and v.dtype not in ("bool", "int4", "uint4", "float8_e4m3fn"))
    if a is None:
        return None
    k, n = a.shape[-1], d.choice([1, 3, 8, 17])
    b = d.fit(d.pick(), (k, n), a.dtype)
    if a.is_float:
        most = int((EXACT[a.dtype] // k) ** 0.5)
        if not most:
            return None
        a, b = d.small(a, most), d.small(b, most)
    return d.add(lambda x, y: lax.dot_general(x, y, (((x.ndim - 1,), (0,)), ((), ())), preferred_element_type=x.dtype), a, b, most=a.most * b.most * k)


def convolution(d):
    a = d.pick(lambda v: len(v.shape) == 4 and v.dtype in ("float32", "float64", "int32"))
    if a is None:
        a = d.fit(d.pick(), (d.randint(1, 2), d.randint(3, 9), d.randint(3, 9), d.choice([1, 2, 4])), d.choice(["float32", "float64", "int32"]))
    w = d.fit(d.pick(), (d.randint(1, 3), d.randint(1, 3), a.shape[-1], d.choice([1, 3, 8])), a.dtype)
    many = int(np.prod(w.shape[:3]))
    a, w = (d.small(v, 100) for v in (a, w))
    stride, dilation = (d.randint(1, 2), d.randint(1, 2)), (d.randint(1, 2), 1)
    return d.add(lambda x, y: lax.conv_general_dilated(x, y, stride, ((1, 2), (2, 1)), dilation, dilation[::-1], dimension_numbers=("NHWC", "HWIO", "NHWC")), a, w,
                 most=a.most * w.most * many)


def ordered(d):
    a = d.pick(lambda v: v.shape and v.dtype not in ("bool", "int4", "uint4"))
    if a is None:
        return None
    k = d.randrange(len(a.shape))
    with_it = d.fit(d.pick(), a.shape, "int32")
    if d.random() < 0.5:
        return d.add(lambda x: lax.sort(x, dimension=k), a, most=a.most)
    return d.add(lambda x, y: lax.sort((x, y), dimension=k, num_keys=1, is_stable=True)[1], a, with_it)


# ---- loops, branches and functions -----------------------------------------------------------------------------------------------


def inner(d, depth, ends, extra=()):
    """A program over some of the values (and `extra` types), its operands, and of what it makes as many as `ends`, of those types."""
    operands = [d.pick() for _ in range(d.randint(1, 3))]
    arguments = [Value(i, v.shape, v.dtype, v.most) for i, v in enumerate([*operands, *extra])]
    body = d.program(arguments, d.randint(1, 6), depth)
    outer, d.p = d.p, body
    made = [d.fit(d.pick(), v.shape, v.dtype) for v in ends]
    made = [d.small(v, w.most) if w.is_float else v for v, w in zip(made, ends)]
    d.p = outer
    return operands, lambda *x: tuple(body.run(*x)[v.at] for v in made)


def loop(d, depth):
    carried = d.pick()
    carried = d.small(carried, 3)
    ends = [carried._replace(most=max(3, carried.most))]
    trips = d.index() if d.random() < 0.5 else None
    operands, body = inner(d, depth, ends, [ends[0], Value(0, (), "int32", 0)])

    def call(x, *rest):
        n, rest = (rest[0] % 5, rest[1:]) if trips else (3, rest)
        return lax.fori_loop(0, n, lambda i, x: body(*rest, x, jnp.int32(i))[0], x)

    return d.add(call, carried, *([trips] if trips else []), *operands, most=ends[0].most)


def scan(d, depth):
    along = d.pick(lambda v: v.shape and v.shape[0] <= 9)
    if along is None:
        return None
    carried = d.small(d.pick(), 3)
    end = carried._replace(most=max(3, carried.most))
    operands, body = inner(d, depth, [end, Value(0, d.shape(d.randint(0, 2)), d.choice(TYPES), 3)],
                           [end, Value(0, along.shape[1:], along.dtype, along.most)])
    reverse, which = d.random() < 0.5, d.randrange(2)
    return d.add(lambda x, xs, *rest: lax.scan(lambda x, row: body(*rest, x, row), x, xs, reverse=reverse)[which], carried, along, *operands,
                 most=end.most if which == 0 else 3)


def branch(d, depth):
    which, end = d.index(), Value(0, d.shape(), d.choice(TYPES), 3)
    bodies = [inner(d, depth, [end]) for _ in range(d.randint(2, 3))]
    operands = [v for of, _ in bodies for v in of]
    starts = np.cumsum([0, *[len(of) for of, _ in bodies]])

    def call(i, *rest):
        return lax.switch(i, [lambda rest, k=k: bodies[k][1](*rest[starts[k]:starts[k + 1]])[0] for k in range(len(bodies))], rest)

    return d.add(call, which, *operands, most=3)


def function(d, depth):
    end = Value(0, d.shape(), d.choice(TYPES), 3)
    operands, body = inner(d, depth, [end])
    return d.add(jax.jit(lambda *x: body(*x)[0]), *operands, most=3)


FLAT = [binary, binary, binary, unary, convert, select, compare, moved, moved, dynamic, indexed, summed, summed, product, convolution, ordered]
DEEP = [loop, scan, branch, function]


# ---- one program in every way ------------------------------------------------------------------------------------------------------


@functools.cache
def halves():
    return Mesh(np.array(jax.devices()[:2]), ("d",))


def sharding(d, shape):
    cut = [k for k, n in enumerate(shape) if n % 2 == 0]
    k = d.choice(cut) if cut and d.random() < 0.8 else None
    return NamedSharding(halves(), PartitionSpec(*["d" if i == k else None for i in range(len(shape))]))


def stored(array):
    """As `weft run` keeps it: what numpy lacks as unsigned integers."""
    if array.dtype.isbuiltin == 1:
        return array
    if array.dtype.name == "uint4":
        return array.astype(np.uint8)
    return array.astype(np.int8).view(np.uint8) & 15 if array.dtype.name == "int4" else array.view(f"u{array.dtype.itemsize}")


def difference(got, want):
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    bad = np.argwhere(~((got == want) | ((got != got) & (want != want))))
    if not len(bad):
        return None
    at = tuple(map(int, bad[0]))
    return f"{len(bad)} of {want.size} differ, {got[at]} at {at}, not {want[at]}"


def check(seed, ways, folder, show=False):
    """What is wrong, a line each."""
    d = Draw(seed)
    types = [(d.shape(), d.choice(TYPES)) for _ in range(d.randint(1, 4))]
    arguments = [d.array(*t) for t in types]
    p = d.program([Value(i, shape, dtype, 3 if dtype in EXACT else 0) for i, (shape, dtype) in enumerate(types)], d.choice([5, 10, 20, 30]), depth=2)
    used = {v.at for _, operands in p.steps for v in operands}
    ends = [v for v in p.values[p.n_in:] if v.at not in used or d.random() < 0.1]
    call = lambda *x: [p.run(*x)[v.at] for v in ends]  # noqa: E731
    want = [stored(np.asarray(x)) for x in jax.jit(call, keep_unused=True)(*arguments)]
    whole = jax.jit(call, keep_unused=True).lower(*arguments).as_text()
    cut = jax.jit(call, keep_unused=True, in_shardings=tuple(sharding(d, x.shape) for x in arguments), out_shardings=[sharding(d, v.shape) for v in ends])
    programs = {1: whole, 2: cut.lower(*arguments).as_text()} if "halves" in ways else {1: whole}
    if show:
        print(whole)
    np.savez(folder / "in.npz", **{f"in{i}": stored(x) for i, x in enumerate(arguments)})
    wrong = []
    for way in ways:
        device, env, times = WAYS[way]
        file, out = folder / f"{seed}.mlir", folder / "out.npz"
        file.write_text(programs[2 if device == "cpu:2" else 1])
        out.unlink(missing_ok=True)
        r = subprocess.run([WEFT, "run", file, "--device", device, "--in", folder / "in.npz", "--out", out, "--repeat", str(times)],
                           env={**os.environ, "WEFT_CACHE": "off", **env}, capture_output=True, text=True, timeout=120)
        if r.returncode:
            wrong.append(f"seed {seed}, {way}: status {r.returncode}: {r.stderr[-400:]}")
            continue
        with np.load(out) as got:
            said = [(i, difference(got[f"out{i}"], w)) for i, w in enumerate(want)]
        wrong += [f"seed {seed}, {way}: result {i} ({ends[i].dtype}): {text}" for i, text in said if text]
    return wrong


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--first", type=int, default=1)
    a.add_argument("--count", type=int, default=20)
    a.add_argument("--ways", nargs="*", choices=WAYS, default=list(WAYS))
    a.add_argument("--show", action="store_true", help="print the programs")
    a = a.parse_args()
    n = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(a.first, a.first + a.count):
            for line in check(seed, a.ways, pathlib.Path(folder), a.show):
                print(line, flush=True)
                n += 1
    print(f"{a.count} programs from {a.first}, {len(a.ways)} ways: {n} results wrong")
    return n > 0


if __name__ == "__main__":
    sys.exit(main())
