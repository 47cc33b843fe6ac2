"""Programs drawn at random for test_limits.py: one operation or a few, of every kind that StableHLO has, in every type, from single numbers to
arrays of gigabytes, and with each what no machine does without: bytes that have to be read and written, and operations of products.

draw(seed, times) is the same program for the same seed, with its leading dimension `times` as long: what takes longer and needs more."""
import math
import random

BITS = {"i1": 8, "i2": 2, "ui2": 2, "i4": 4, "ui4": 4, "f4E2M1FN": 4, "f6E2M3FN": 6, "f6E3M2FN": 6, "complex<f32>": 64, "complex<f64>": 128}
F8 = ["f8E4M3FN", "f8E5M2", "f8E4M3B11FNUZ", "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E3M4", "f8E4M3", "f8E8M0FNU"]
FLOATS = ["f32", "f32", "bf16", "bf16", "f16", "f64"]
INTS = ["i8", "ui8", "i16", "ui16", "i32", "i32", "ui32", "i64", "ui64", "i4", "ui4"]
COMPLEX = ["complex<f32>", "complex<f64>"]
MOST = 1 << 28  # elements of an array


def bits(kind):
    return BITS.get(kind) or int("".join(c for c in kind.split("E")[0] if c.isdigit()))


def text(dims, kind):
    return "tensor<" + "x".join([*map(str, dims), kind]) + ">"


class Program:
    def __init__(self, seed, times):
        self.r, self.times = random.Random(seed), times
        self.args, self.lines, self.n = [], [], 0
        self.least = {}      # value -> bytes of it that have to be read, of arguments
        self.flops = 0       # of products
        self.results = []
        self.monotone = True

    # ---- drawing

    def one_in(self, n):
        return self.r.randrange(n) == 0

    def size(self, most=4096):
        s = self.r.choice([1, 2, 3, 7, 8, 16, 31, 64, 100, 127, 128, 129, 255, 256, 384, 511, 1000, 1024, 2048, 3000, 4096, 10007, 65536])
        return max(1, min(s, most))

    def dims(self, rank, total=MOST // 4):
        out = []
        for _ in range(rank):
            out.append(self.size(max(1, total // max(1, math.prod(out)))))
        if self.one_in(3):
            self.r.shuffle(out)
        return out

    def shape(self, low=0, high=6):
        rank = self.r.randint(low, high)
        d = self.dims(rank, self.r.choice([64, 4096, 1 << 18, 1 << 23, MOST // 4]))
        return self.longer(d)

    def longer(self, d, at=0):
        return [*d[:at], d[at] * self.times, *d[at + 1:]] if d else d

    def number(self):
        return self.r.choice(FLOATS + INTS)

    # ---- writing

    def name(self):
        self.n += 1
        return f"%v{self.n}"

    def arg(self, dims, kind, read=1.0):
        v = (f"%a{len(self.args)}", list(dims), kind)
        self.args.append(v)
        self.least[v[0]] = math.ceil(math.prod(dims) * bits(kind) / 8) * read
        return v

    def op(self, name, operands, outs, attrs="", regions=""):
        names = [self.name() for _ in outs]
        ins = ", ".join(text(d, k) for _, d, k in operands)
        types = ", ".join(text(d, k) for d, k in outs)
        self.lines.append(f'{", ".join(names)} = "{name}"({", ".join(v for v, _, _ in operands)}){" (" + regions + ")" if regions else ""}'
                          f'{" {" + attrs + "}" if attrs else ""} : ({ins}) -> {"(" + types + ")" if len(outs) != 1 else types}')
        values = [(n, list(d), k) for n, (d, k) in zip(names, outs)]
        return values[0] if len(values) == 1 else values

    def constant(self, kind, value="0", dims=()):
        if kind.startswith("complex"):
            value = "(0.0, 0.0)"
        elif kind[0] in "fb" and value != "true":
            value = "1.0" if kind == "f8E8M0FNU" else f"{float(value):.1f}"
        elif kind == "i1":
            value = "false"
        n = self.name()
        self.lines.append(f"{n} = stablehlo.constant dense<{value}> : {text(dims, kind)}")
        return n, list(dims), kind

    def region(self, kinds, line, result="i1"):
        args = ", ".join(f"%r{self.n}_{i}: tensor<{k}>" for i, k in enumerate(kinds))
        names = [f"%r{self.n}_{i}" for i in range(len(kinds))]
        self.n += 1
        return "{ ^bb0(" + args + "): " + line(names) + " }"

    def adder(self, kind, op="add"):
        if kind == "i1":
            op = "or"
        t = f"tensor<{kind}>"
        return self.region([kind, kind], lambda a: f'%z = "stablehlo.{op}"({a[0]}, {a[1]}) : ({t}, {t}) -> {t} "stablehlo.return"(%z) : ({t}) -> ()')

    def ends(self):
        return sum(self.least.values()) + sum(math.prod(d) * bits(k) / 8 for _, d, k in self.results)

    def mlir(self):
        args = ", ".join(f"{n}: {text(d, k)}" for n, d, k in self.args)
        types = ", ".join(text(d, k) for _, d, k in self.results)
        body = "\n    ".join(self.lines)
        return (f"module {{\n  func.func public @main({args}) -> ({types}) {{\n    {body}\n    "
                f"\"func.return\"({', '.join(n for n, _, _ in self.results)}) : ({types}) -> ()\n  }}\n}}\n")


def ints(v):
    return f"array<i64: {', '.join(map(str, v))}>" if v else "array<i64>"


# ---- operations: each takes the program and leaves its results there ----

UNARY_F = ["abs", "cbrt", "ceil", "cosine", "exponential", "exponential_minus_one", "floor", "log", "log_plus_one", "logistic", "negate",
           "round_nearest_afz", "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh"]
BINARY_F = ["add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract"]
BINARY_I = ["add", "and", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder", "shift_left", "shift_right_arithmetic",
            "shift_right_logical", "subtract", "xor"]
CHLO = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "cosh", "digamma", "erf", "erf_inv", "erfc", "lgamma", "sinh"]


def elementwise(p):
    kind = p.r.choice(FLOATS + INTS + COMPLEX + F8)
    d = p.shape()
    x = p.arg(d, kind)
    for _ in range(p.r.choice([1, 1, 2, 5, 40])):
        if kind in F8 or kind == "f8E8M0FNU":
            x = p.op("stablehlo.convert", [x], [(d, "f32")])
            kind = "f32"
        elif kind.startswith("complex"):
            x = p.op("stablehlo." + p.r.choice(["exponential", "log", "multiply", "add", "sine", "tanh", "sqrt", "divide"]), [x], [(d, kind)]) if 0 else (
                p.op("stablehlo." + p.r.choice(["exponential", "log", "sine", "tanh", "sqrt", "negate"]), [x], [(d, kind)]) if p.one_in(2) else
                p.op("stablehlo." + p.r.choice(["multiply", "add", "divide", "subtract", "power"]), [x, x], [(d, kind)]))
        elif kind[0] in "fb":
            x = (p.op("stablehlo." + p.r.choice(UNARY_F), [x], [(d, kind)]) if p.one_in(2) else
                 p.op("stablehlo." + p.r.choice(BINARY_F), [x, p.arg(d, kind) if p.one_in(4) else x], [(d, kind)]))
        elif p.one_in(3):
            x = p.op("stablehlo." + p.r.choice(["not", "popcnt", "count_leading_zeros"]), [x], [(d, kind)])
        else:
            x = p.op("stablehlo." + p.r.choice(BINARY_I), [x, p.arg(d, kind) if p.one_in(4) else x], [(d, kind)])
    p.results.append(x)


def special(p):
    kind, d = p.r.choice(["f32", "bf16", "f64"]), p.shape()
    p.results.append(p.op("chlo." + p.r.choice(CHLO), [p.arg(d, kind)], [(d, kind)]))


def convert(p):
    d, to = p.shape(), p.r.choice(FLOATS + INTS + F8 + ["i1"])
    p.results.append(p.op("stablehlo.convert", [p.arg(d, p.r.choice(FLOATS + INTS + F8 + ["i1"]))], [(d, to)]))


def compare(p):
    d, kind = p.shape(), p.r.choice(FLOATS + ["i32", "i8"])
    a, b = p.arg(d, kind), p.arg(d, kind)
    m = p.op("stablehlo.compare", [a, b], [(d, "i1")], "comparison_direction = #stablehlo<comparison_direction LT>")
    p.results.append(p.op("stablehlo.select", [m, a, b], [(d, kind)]) if p.one_in(2) else m)


def complexes(p):
    d, f = p.shape(), p.r.choice(["f32", "f64"])
    if p.one_in(2):
        p.results.append(p.op("stablehlo.complex", [p.arg(d, f), p.arg(d, f)], [(d, f"complex<{f}>")]))
    else:
        x = p.arg(d, f"complex<{f}>", 0.5 if p.one_in(1) else 1)
        p.results.append(p.op("stablehlo." + p.r.choice(["real", "imag"]), [x], [(d, f)]))


def broadcast(p):
    d, kind = p.shape(1), p.number()
    kept = sorted(p.r.sample(range(len(d)), p.r.randint(0, len(d))))
    x = p.arg([d[i] for i in kept], kind)
    p.results.append(p.op("stablehlo.broadcast_in_dim", [x], [(d, kind)], f"broadcast_dimensions = {ints(kept)}"))


def iota(p):
    d, kind = p.shape(1), p.r.choice(["i32", "f32", "bf16", "i8", "f64"])
    p.results.append(p.op("stablehlo.iota", [], [(d, kind)], f"iota_dimension = {p.r.randrange(len(d))} : i64"))


def transpose(p):
    d, kind = p.shape(1), p.r.choice(FLOATS + INTS + COMPLEX + ["i1"] + F8)
    perm = p.r.sample(range(len(d)), len(d))
    p.results.append(p.op("stablehlo.transpose", [p.arg(d, kind)], [([d[i] for i in perm], kind)], f"permutation = {ints(perm)}"))


def reshape(p):
    d, kind = p.shape(1), p.r.choice(FLOATS + INTS + ["i1"])
    flat = list(d)
    for _ in range(p.r.randint(1, 3)):
        if p.one_in(2) and len(flat) > 1:
            i = p.r.randrange(len(flat) - 1)
            flat[i:i + 2] = [flat[i] * flat[i + 1]]
        elif len(flat) < 6:
            i = p.r.randrange(len(flat))
            f = next((f for f in (8, 3, 2, 5) if flat[i] % f == 0), 1)
            flat[i:i + 1] = [flat[i] // f, f]
    x = p.arg(d, kind)
    if p.one_in(2) and kind[0] in "fb":
        x = p.op("stablehlo.add", [x, x], [(d, kind)])
    p.results.append(p.op("stablehlo.reshape", [x], [(flat, kind)]))


def reverse(p):
    d, kind = p.shape(1), p.r.choice(FLOATS + INTS)
    at = sorted(p.r.sample(range(len(d)), p.r.randint(1, len(d))))
    p.results.append(p.op("stablehlo.reverse", [p.arg(d, kind)], [(d, kind)], f"dimensions = {ints(at)}"))


def slices(p):
    d, kind = p.shape(1), p.r.choice(FLOATS + INTS)
    lo, hi, st = [], [], []
    for i, n in enumerate(d):
        a = p.r.randint(0, n // 4) if i else 0
        b = p.r.randint(a + 1, n) if i else n
        lo.append(a), hi.append(b), st.append(p.r.choice([1, 1, 1, 2, 3]) if i else 1)
    out = [-(-(b - a) // s) for a, b, s in zip(lo, hi, st)]
    x = p.arg(d, kind, math.prod(out) / math.prod(d))
    p.results.append(p.op("stablehlo.slice", [x], [(out, kind)],
                          f"start_indices = {ints(lo)}, limit_indices = {ints(hi)}, strides = {ints(st)}"))


def pad(p):
    d, kind = p.shape(1), p.r.choice(FLOATS + INTS)
    lo, hi, mid = ([p.r.choice([0, 0, 1, 3, 64]) for _ in d] for _ in range(3))
    mid = [min(m, 1) for m in mid]
    out = [a + b + n + (n - 1) * m for a, b, n, m in zip(lo, hi, d, mid)]
    if math.prod(out) / p.times > 4 * MOST:
        lo, hi, mid, out = [0] * len(d), [1] + [0] * (len(d) - 1), [0] * len(d), [d[0] + 1, *d[1:]]
    p.results.append(p.op("stablehlo.pad", [p.arg(d, kind), p.constant(kind)], [(out, kind)],
                          f"edge_padding_low = {ints(lo)}, edge_padding_high = {ints(hi)}, interior_padding = {ints(mid)}"))


def concatenate(p):
    d, kind, at = p.shape(1), p.number(), 0
    parts = [p.arg([d[0], *d[1:]], kind) for _ in range(p.r.choice([2, 2, 3, 9]))]
    at = p.r.randrange(len(d))
    out = [n * len(parts) if i == at else n for i, n in enumerate(d)]
    p.results.append(p.op("stablehlo.concatenate", parts, [(out, kind)], f"dimension = {at} : i64"))


def reduce(p):
    d, kind = p.shape(1), p.r.choice(FLOATS + ["i32", "i8", "i64", "i1", "complex<f32>"])
    at = sorted(p.r.sample(range(len(d)), p.r.randint(1, len(d))))
    out = [n for i, n in enumerate(d) if i not in at]
    op = "add" if kind.startswith("complex") else p.r.choice(["add", "maximum", "minimum", "multiply"])
    p.results.append(p.op("stablehlo.reduce", [p.arg(d, kind), p.constant(kind)], [(out, kind)], f"dimensions = {ints(at)}", p.adder(kind, op)))


def argmax(p):
    d, kind = p.shape(1), p.r.choice(["f32", "bf16", "i32"])
    at = p.r.randrange(len(d))
    x = p.arg(d, kind)
    i = p.op("stablehlo.iota", [], [(d, "i32")], f"iota_dimension = {at} : i64")
    out = [n for k, n in enumerate(d) if k != at]
    t, s = f"tensor<{kind}>", "tensor<i32>"
    line = lambda a: (f'%c = "stablehlo.compare"({a[0]}, {a[2]}) {{comparison_direction = #stablehlo<comparison_direction GT>}} : ({t}, {t}) -> tensor<i1> '
                      f'%m = "stablehlo.select"(%c, {a[0]}, {a[2]}) : (tensor<i1>, {t}, {t}) -> {t} '
                      f'%j = "stablehlo.select"(%c, {a[1]}, {a[3]}) : (tensor<i1>, {s}, {s}) -> {s} "stablehlo.return"(%m, %j) : ({t}, {s}) -> ()')
    p.results += p.op("stablehlo.reduce", [x, i, p.constant(kind), p.constant("i32")], [(out, kind), (out, "i32")],
                      f"dimensions = {ints([at])}", p.region([kind, "i32"] * 2, line))


def window(p):
    rank = p.r.randint(1, 4)
    d, kind = p.longer(p.dims(rank, 1 << 22)), p.r.choice(["f32", "bf16", "i32", "f64"])
    w = [min(n, p.r.choice([1, 2, 3, 5])) if i else 1 for i, n in enumerate(d)]
    s = [p.r.choice([1, 1, 2]) if i else 1 for i in range(rank)]
    lo, hi = [p.r.randint(0, k - 1) for k in w], [p.r.randint(0, k - 1) for k in w]
    x = p.arg(d, kind)
    if rank > 1 and p.one_in(4):  # a running sum
        w[-1], s[-1], lo[-1], hi[-1] = d[-1], 1, d[-1] - 1, 0
    out = [(n + a + b - k) // q + 1 for n, a, b, k, q in zip(d, lo, hi, w, s)]
    padding = f"dense<{[[a, b] for a, b in zip(lo, hi)]}> : tensor<{rank}x2xi64>"
    if max(s) > 1:
        p.least[x[0]] *= math.prod(out) / math.prod(d) if math.prod(out) < math.prod(d) else 1
    p.results.append(p.op("stablehlo.reduce_window", [x, p.constant(kind)], [(out, kind)],
                          f"window_dimensions = {ints(w)}, window_strides = {ints(s)}, base_dilations = {ints([1] * rank)}, "
                          f"window_dilations = {ints([1] * rank)}, padding = {padding}", p.adder(kind, p.r.choice(["add", "maximum"]))))


def select_and_scatter(p):
    b, h, c, kind = 4 * p.times, p.r.choice([8, 28, 56]), p.r.choice([3, 64, 200]), p.r.choice(["f32", "bf16"])
    x, dy = p.arg([b, h, h, c], kind), p.arg([b, h // 2, h // 2, c], kind)
    t = f"tensor<{kind}>"
    ge = p.region([kind] * 2, lambda a: f'%c = "stablehlo.compare"({a[0]}, {a[1]}) {{comparison_direction = #stablehlo<comparison_direction GE>}} : '
                  f'({t}, {t}) -> tensor<i1> "stablehlo.return"(%c) : (tensor<i1>) -> ()')
    p.results.append(p.op("stablehlo.select_and_scatter", [x, dy, p.constant(kind)], [([b, h, h, c], kind)],
                          f"window_dimensions = {ints([1, 2, 2, 1])}, window_strides = {ints([1, 2, 2, 1])}", ge + ", " + p.adder(kind)))


def batch_norm(p):
    d = p.longer([p.r.choice([1, 8, 64]), p.r.choice([1, 14, 56]), p.r.choice([3, 64, 256])])
    kind, f = p.r.choice(["f32", "bf16"]), 2
    v = [d[f]]
    x, s, o = p.arg(d, kind), p.arg(v, kind), p.arg(v, kind)
    attrs = "epsilon = 0.001 : f32, feature_index = 2 : i64"
    which = p.r.randrange(3)
    if which == 0:
        p.results += p.op("stablehlo.batch_norm_training", [x, s, o], [(d, kind), (v, kind), (v, kind)], attrs)
    elif which == 1:
        p.results.append(p.op("stablehlo.batch_norm_inference", [x, s, o, p.arg(v, kind), p.arg(v, kind)], [(d, kind)], attrs))
    else:
        p.results += p.op("stablehlo.batch_norm_grad", [x, s, o, p.arg(v, kind), p.arg(d, kind)], [(d, kind), (v, kind), (v, kind)], attrs)


def dot(p):
    kind = p.r.choice(FLOATS + ["i8", "i32", "i4", "ui8", "f8E4M3FN", "f8E5M2", "complex<f32>", "complex<f64>", "i16", "i64"])
    out = {"i8": "i32", "i4": "i32", "ui8": "i32", "f8E4M3FN": "f32", "f8E5M2": "f32"}.get(kind, kind)
    if kind in ("bf16", "f16") and p.one_in(3):
        out = "f32"
    nb = p.r.choice([0, 0, 1, 1, 2])
    b, m, k, n = p.dims(nb, 64), p.dims(p.r.randint(0, 2), 8192), p.dims(p.r.randint(0 if nb else 1, 2), 8192), p.dims(p.r.randint(0, 2), 8192)
    if nb:
        b = p.longer(b)
    elif m:
        m = p.longer(m)
    else:
        k = p.longer(k)
    lhs, rhs = [("b", i) for i in range(len(b))], [("b", i) for i in range(len(b))]
    lhs += [("m", i) for i in range(len(m))] + [("k", i) for i in range(len(k))]
    rhs += [("n", i) for i in range(len(n))] + [("k", i) for i in range(len(k))]
    p.r.shuffle(lhs), p.r.shuffle(rhs)
    size = lambda x: {"b": b, "m": m, "k": k, "n": n}[x[0]][x[1]]
    pos = lambda side, c, v: ", ".join(str(side.index((c, i))) for i in range(len(v)))
    precision = p.r.choice(["", "", "HIGH", "HIGHEST"])
    attrs = (f"dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [{pos(lhs, 'b', b)}], rhs_batching_dimensions = [{pos(rhs, 'b', b)}], "
             f"lhs_contracting_dimensions = [{pos(lhs, 'k', k)}], rhs_contracting_dimensions = [{pos(rhs, 'k', k)}]>")
    if precision:
        attrs += f", precision_config = [#stablehlo<precision {precision}>, #stablehlo<precision {precision}>]"
    p.results.append(p.op("stablehlo.dot_general", [p.arg(map(size, lhs), kind), p.arg(map(size, rhs), kind)], [(b + [size(x) for s in (lhs, rhs) for x in s if x[0] in "mn"], out)], attrs))
    p.flops = 2 * math.prod(b + m + n + k)


def convolution(p):
    ns = p.r.choice([0, 1, 1, 2, 2, 2, 2, 3])
    kind = p.r.choice(["f32", "bf16", "bf16", "f16", "f64", "i8", "f8E4M3FN", "complex<f32>"])
    out_kind = {"i8": "i32", "f8E4M3FN": "f32"}.get(kind, kind)
    n = p.r.choice([1, 2, 5, 16, 64, 128])
    fg = bg = 1
    if p.one_in(3):
        fg = p.r.choice([2, 4, 32, 96])
    elif p.one_in(6):
        bg = p.r.choice([2, 4])
        n = max(n // bg, 1) * bg
    ci, co = p.r.choice([1, 3, 16, 64, 100, 256]), p.r.choice([1, 2, 8, 64, 128, 320])
    co *= fg * bg
    sp = [p.size(224 if ns < 3 else 24) if i == 0 or p.one_in(4) else 0 for i in range(ns)]
    sp = [s or sp[0] for s in sp]
    while n * math.prod(sp) * ci * fg > 1 << 25 or n * math.prod(sp) * co > 1 << 27:
        sp = [max(1, s // 2) for s in sp]
        ci, co = max(1, ci // 2), max(fg * bg, co // 2 // (fg * bg) * fg * bg)
    n *= p.times
    ks = [min(p.r.choice([1, 3, 3, 5, 7]), s) for s in sp]
    st, ld, rd = ([p.r.choice([1, 1, 1, 2]) for _ in sp] for _ in range(3))
    eff = [(k - 1) * d + 1 for k, d in zip(ks, rd)]
    pads = [(e // 2, e // 2) for e in eff]
    outs = [((s - 1) * l + 1 + a + b - e) // t + 1 for s, l, (a, b), e, t in zip(sp, ld, pads, eff, st)]
    if min(outs, default=1) < 1:
        return dot(p)
    names = [str(i) for i in range(ns)]
    def order(*ends):
        o = [*ends, *names]
        p.r.shuffle(o)
        return o
    lo, ko, oo = order("b", "f"), order("i", "o"), order("b", "f")
    put = lambda o, m: [m[x] for x in o]
    x = p.arg(put(lo, {"b": n, "f": ci * fg, **dict(zip(names, sp))}), kind)
    w = p.arg(put(ko, {"i": ci, "o": co, **dict(zip(names, ks))}), kind)
    res = put(oo, {"b": n // bg, "f": co, **dict(zip(names, outs))})
    pad_text = f"dense<{[list(q) for q in pads]}> : tensor<{ns}x2xi64>" if ns else "dense<> : tensor<0x2xi64>"
    p.results.append(p.op("stablehlo.convolution", [x, w], [(res, out_kind)],
                          f"batch_group_count = {bg} : i64, feature_group_count = {fg} : i64, dimension_numbers = #stablehlo.conv<[{', '.join(lo)}]x[{', '.join(ko)}]->[{', '.join(oo)}]>, "
                          f"lhs_dilation = {ints(ld)}, rhs_dilation = {ints(rd)}, window_strides = {ints(st)}, padding = {pad_text}"))
    valid = 1  # places and taps that meet an element, not padding
    for n_in, n_out, k, t, l, d, (a, _) in zip(sp, outs, ks, st, ld, rd, pads):
        at = [o * t - a + j * d for o in range(n_out) for j in range(k)]
        valid *= sum(0 <= i <= (n_in - 1) * l and i % l == 0 for i in at)
    p.flops = 2 * n // bg * co * ci * valid
    if max(st + ld, default=1) > 1:
        p.least.update({x[0]: 0, w[0]: 0})  # strides pass over places


def gather(p):
    rows, width, n, kind = p.size(65536), p.dims(p.r.randint(0, 2), 4096), p.size(8192) * p.times, p.r.choice(["f32", "bf16", "i8", "f64", "i32"])
    x, i = p.arg([rows, *width], kind, 0), p.arg([n, 1], p.r.choice(["i32", "i64", "ui32"]))
    p.results.append(p.op("stablehlo.gather", [x, i], [([n, *width], kind)],
                          f"dimension_numbers = #stablehlo.gather<offset_dims = [{', '.join(str(k + 1) for k in range(len(width)))}], collapsed_slice_dims = [0], "
                          f"start_index_map = [0], index_vector_dim = 1>, slice_sizes = {ints([1, *width])}, indices_are_sorted = false"))


def scatter(p):
    rows, width, n, kind = p.size(65536), p.dims(p.r.randint(0, 2), 4096), p.size(8192) * p.times, p.r.choice(["f32", "bf16", "i32", "f64", "i8"])
    d = [rows, *width]
    x, i, u = p.arg(d, kind), p.arg([n, 1], "i32"), p.arg([n, *width], kind)
    p.results.append(p.op("stablehlo.scatter", [x, i, u], [(d, kind)],
                          f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [{', '.join(str(k + 1) for k in range(len(width)))}], "
                          "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false",
                          p.adder(kind, p.r.choice(["add", "maximum"]))))


def dynamic(p):
    d, kind = p.shape(1, 4), p.r.choice(["f32", "bf16", "i8"])
    part = [d[0], *[p.r.randint(1, n) for n in d[1:]]]
    at = [p.arg([], "i32") for _ in d]
    if p.one_in(2):
        x = p.arg(d, kind, math.prod(part) / math.prod(d))
        p.results.append(p.op("stablehlo.dynamic_slice", [x, *at], [(part, kind)], f"slice_sizes = {ints(part)}"))
    else:
        x, u = p.arg(d, kind, 1 - math.prod(part) / math.prod(d)), p.arg(part, kind)
        p.results.append(p.op("stablehlo.dynamic_update_slice", [x, u, *at], [(d, kind)]))


def sort(p):
    d, kind = p.shape(1, 4), p.r.choice(["f32", "bf16", "i32", "i64", "f64", "i8"])
    many = p.r.choice([1, 1, 2, 3])
    kinds = [kind] + ["i32", "f32"][:many - 1]
    xs = [p.arg(d, k) for k in kinds]
    t = f"tensor<{kind}>"
    body = p.region([k for k in kinds for _ in range(2)], lambda a: f'%c = "stablehlo.compare"({a[0]}, {a[1]}) {{comparison_direction = '
                    f'#stablehlo<comparison_direction LT>}} : ({t}, {t}) -> tensor<i1> "stablehlo.return"(%c) : (tensor<i1>) -> ()')
    y = p.op("stablehlo.sort", xs, [(d, k) for k in kinds], f"dimension = {p.r.randrange(len(d))} : i64, is_stable = {p.r.choice(['true', 'false'])}", body)
    p.results += y if many > 1 else [y]


def top_k(p):
    d, kind = p.shape(1, 3), p.r.choice(["f32", "bf16"])
    k = p.r.randint(1, min(d[-1], 64)) if len(d) > 1 else 1
    out = [*d[:-1], k]
    p.results += p.op("chlo.top_k", [p.arg(d, kind)], [(out, kind), (out, "i32")], f"k = {k} : i64")


def fft(p):
    nd = p.r.randint(1, 3)
    sizes = [p.r.choice([1, 2, 3, 7, 16, 100, 127, 128, 1000, 1024, 4096]) for _ in range(nd)]
    while math.prod(sizes) > 1 << 22:
        sizes[p.r.randrange(nd)] = 2
    d = p.longer([p.r.choice([1, 3, 64])]) + sizes
    f = p.r.choice(["f32", "f64"])
    which = p.r.choice(["FFT", "IFFT", "RFFT", "IRFFT"])
    half = [*d[:-1], d[-1] // 2 + 1]
    ins, out = {"RFFT": ((d, f), (half, f"complex<{f}>")), "IRFFT": ((half, f"complex<{f}>"), (d, f))}.get(which, ((d, f"complex<{f}>"), (d, f"complex<{f}>")))
    p.results.append(p.op("stablehlo.fft", [p.arg(*ins)], [out], f"fft_type = #stablehlo<fft_type {which}>, fft_length = {ints(sizes)}"))


def random_bits(p):
    d, kind = p.shape(1), p.r.choice(["ui32", "ui64", "ui8", "ui16"])
    s, y = p.op("stablehlo.rng_bit_generator", [p.arg([2], "ui64")], [([2], "ui64"), (d, kind)],
                f"rng_algorithm = #stablehlo<rng_algorithm {p.r.choice(['DEFAULT', 'THREE_FRY', 'PHILOX'])}>")
    if kind == "ui32" and p.one_in(2):
        y = p.op("stablehlo.convert", [y], [(d, "f32")])
    p.results += [s, y]


def rng(p):
    d, kind = p.shape(1), p.r.choice(["f32", "bf16", "f64"])
    p.lines.append(f"%shape = stablehlo.constant dense<{d}> : tensor<{len(d)}xi64>")
    p.results.append(p.op("stablehlo.rng", [p.arg([], kind), p.arg([], kind), ("%shape", [len(d)], "i64")], [(d, kind)],
                          f"rng_distribution = #stablehlo<rng_distribution {p.r.choice(['UNIFORM', 'NORMAL'])}>"))


def cholesky(p):
    n, b, kind = p.size(4096), p.dims(p.r.randint(0, 2), 16), p.r.choice(["f32", "f64", "bf16", "complex<f32>", "f16"])
    d = p.longer(b) + [n, n]
    p.results.append(p.op("stablehlo.cholesky", [p.arg(d, kind, 0.5)], [(d, kind)], "lower = true"))
    p.monotone = bool(b)
    p.flops = math.prod(d) * n / 3


def triangular_solve(p):
    n, m, b, kind = p.size(4096), p.size(1024), p.dims(p.r.randint(0, 1), 16), p.r.choice(["f32", "f64", "bf16", "complex<f64>"])
    b = p.longer(b)
    left = p.one_in(2)
    a, x = p.arg([*b, n, n], kind, 0.5), p.arg([*b, n, m] if left else [*b, m, n], kind)
    p.results.append(p.op("stablehlo.triangular_solve", [a, x], [(x[1], kind)], f"left_side = {str(left).lower()}, lower = true, unit_diagonal = false, "
                          "transpose_a = #stablehlo<transpose NO_TRANSPOSE>"))
    p.flops = math.prod(b) * n * n * m


def linalg_call(p):
    n, kind = p.size(2048), p.r.choice(["f32", "f64"])
    b = p.longer([p.r.choice([1, 3])])
    d = [*b, n, n]
    x = p.arg(d, kind)
    name, outs = p.r.choice([("Qr", [(d, kind), ([*b, n], kind)]), ("Eigh", [(d, kind), ([*b, n], kind)]),
                             ("LuDecomposition", [(d, kind), ([*b, n], "i32"), ([*b, n], "i32")]),
                             ("lapack_" + {"f32": "s", "f64": "d"}[kind] + "getrf_ffi", [(d, kind), ([*b, n], "i32"), (b, "i32")]),
                             ("unheard_of", [(d, kind), (b, "i32")]), ("Sharding", [(d, kind), (b, "i32")])])
    ys = p.op("stablehlo.custom_call", [x], outs, f'call_target_name = "{name}", api_version = 1 : i32')
    p.results += ys
    if "Sharding" in name:
        p.lines, p.results, p.n = [], [], 0
        p.results.append(p.op("stablehlo.custom_call", [x], [(d, kind)], 'call_target_name = "Sharding"'))


def loop(p):
    d, kind = p.shape(0, 3), p.r.choice(["f32", "bf16", "i32", "f64"])
    trips = p.r.choice([0, 1, 2, 3, 10, 1000, 10 ** 7]) * (1 if d else p.times)
    p.monotone = trips > 0
    x = p.arg(d, kind)
    t = text(d, kind)
    z, one, n = p.constant("i32"), p.constant("i32", "1"), p.constant("i32", str(trips))
    work = p.r.choice(["multiply", "add", "tanh", "product"])
    if kind == "i32" and work == "tanh":
        work = "add"
    if work == "product" and (len(d) != 2 or d[1] > 2048):
        work = "add"
    w = p.arg([d[1], d[1]], kind) if work == "product" else None
    if work == "product":
        body = (f'%q = "stablehlo.dot_general"(%y, {w[0]}) {{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], '
                f'rhs_contracting_dimensions = [0]>}} : ({t}, {text(w[1], kind)}) -> {t}')
        p.flops = trips * 2 * math.prod(d) * d[1]
    elif work == "tanh":
        body = f'%q = "stablehlo.tanh"(%y) : ({t}) -> {t}'
    else:
        body = f'%q = "stablehlo.{work}"(%y, %y) : ({t}, {t}) -> {t}'
    i, y = p.op("stablehlo.while", [z, x], [([], "i32"), (d, kind)], "",
                f'{{ ^bb0(%i: tensor<i32>, %y: {t}): %c = "stablehlo.compare"(%i, {n[0]}) {{comparison_direction = #stablehlo<comparison_direction LT>}} : '
                f'(tensor<i32>, tensor<i32>) -> tensor<i1> "stablehlo.return"(%c) : (tensor<i1>) -> () }}, '
                f'{{ ^bb0(%i: tensor<i32>, %y: {t}): {body} %j = "stablehlo.add"(%i, {one[0]}) : (tensor<i32>, tensor<i32>) -> tensor<i32> '
                f'"stablehlo.return"(%j, %q) : (tensor<i32>, {t}) -> () }}')
    p.results.append(y)
    if trips == 0:
        p.least = dict.fromkeys(p.least, 0)


def branch(p):
    d, kind = p.shape(0, 4), p.r.choice(["f32", "bf16"])
    x, k = p.arg(d, kind), p.arg([], "i32")
    t = text(d, kind)
    arm = lambda i, op: f'{{ %b{i} = "stablehlo.{op}"({x[0]}) : ({t}) -> {t} "stablehlo.return"(%b{i}) : ({t}) -> () }}'
    p.results.append(p.op("stablehlo.case", [k], [(d, kind)], "", ", ".join(arm(i, p.r.choice(["tanh", "negate", "sine"])) for i in range(p.r.randint(1, 4)))))


def bitcast(p):
    d = p.shape(0, 5)
    a, b = p.r.choice([("f32", "i32"), ("bf16", "i16"), ("f64", "i64"), ("i8", "ui8")])
    p.results.append(p.op("stablehlo.bitcast_convert", [p.arg(d, a)], [(d, b)]))


def barrier(p):
    d, kind = p.shape(0, 4), p.number()
    x = p.op("stablehlo.optimization_barrier", [p.arg(d, kind)], [(d, kind)])
    p.results.append(p.op("stablehlo.add", [x, x], [(d, kind)]))


def softmax(p):
    d, kind = p.shape(1, 4), p.r.choice(["f32", "bf16", "f16", "f64"])
    at = len(d) - 1
    x = p.arg(d, kind)
    less, keep = d[:-1], ints(range(at))
    m = p.op("stablehlo.reduce", [x, p.constant(kind)], [(less, kind)], f"dimensions = {ints([at])}", p.adder(kind, "maximum"))
    m = p.op("stablehlo.broadcast_in_dim", [m], [(d, kind)], f"broadcast_dimensions = {keep}")
    e = p.op("stablehlo.exponential", [p.op("stablehlo.subtract", [x, m], [(d, kind)])], [(d, kind)])
    s = p.op("stablehlo.reduce", [e, p.constant(kind)], [(less, kind)], f"dimensions = {ints([at])}", p.adder(kind))
    s = p.op("stablehlo.broadcast_in_dim", [s], [(d, kind)], f"broadcast_dimensions = {keep}")
    p.results.append(p.op("stablehlo.divide", [e, s], [(d, kind)]))


def layers(p):
    """Products one after the other, with what stands between them."""
    kind, n, b = p.r.choice(["f32", "bf16", "f16", "f64"]), p.r.randint(1, 6), p.r.choice([1, 8, 100, 1024]) * p.times
    widths = [p.size(4096) for _ in range(n + 1)]
    x = p.arg([b, widths[0]], kind)
    for i in range(n):
        w = p.arg(widths[i:i + 2], kind)
        x = p.op("stablehlo.dot_general", [x, w], [([b, widths[i + 1]], kind)],
                 "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>")
        p.flops += 2 * b * widths[i] * widths[i + 1]
        x = p.op("stablehlo." + p.r.choice(["tanh", "logistic", "exponential"]), [x], [(x[1], kind)])
    p.results.append(x)


def identity(p):
    p.results.append(p.arg(p.shape(0, 5), p.number()))


def huge(p):
    """More than a chip holds, more elements than 32 bits count."""
    d, kind = p.longer([p.r.choice([1 << 16, 100003]), p.r.choice([1 << 16, 70001])]), p.r.choice(["f32", "bf16", "i8", "f64", "i4"])
    which = p.r.randrange(5)
    x = p.arg(d, kind)
    if which == 0:
        p.results.append(p.op("stablehlo.add", [x, x], [(d, kind)]))
    elif which == 1:
        p.results.append(p.op("stablehlo.transpose", [x], [(d[::-1], kind)], "permutation = array<i64: 1, 0>"))
    elif which == 2:
        p.results.append(p.op("stablehlo.reduce", [x, p.constant(kind)], [(d[:1], kind)], "dimensions = array<i64: 1>", p.adder(kind)))
    elif which == 3:
        w = p.arg([d[1], 65536], kind)
        p.results.append(p.op("stablehlo.dot_general", [x, w], [([d[0], 65536], kind)],
                              "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"))
        p.flops = 2 * math.prod(d) * 65536
    else:
        p.results.append(p.op("stablehlo.broadcast_in_dim", [p.op("stablehlo.add", [x, x], [(d, kind)])], [([*d, 8], kind)], "broadcast_dimensions = array<i64: 0, 1>"))


def quantized(p):
    d = p.shape(1, 4)
    q = "!quant.uniform<i8:f32, 0.5:3>"
    x = p.op("stablehlo.uniform_quantize", [p.arg(d, "f32")], [(d, q)])
    p.results.append(p.op("stablehlo.uniform_dequantize", [x], [(d, "f32")]))


def collective(p):
    d, kind = p.shape(1, 3), p.r.choice(["f32", "bf16", "i32"])
    n = p.r.choice([2, 4])
    d[0] *= n
    x = p.arg(d, kind)
    groups = f"replica_groups = dense<[{list(range(n))}]> : tensor<1x{n}xi64>"
    which = p.r.randrange(5)
    ch = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids"
    if which == 0:
        p.results.append(p.op("stablehlo.all_reduce", [x], [(d, kind)], f"{groups}, {ch}", p.adder(kind)))
    elif which == 1:
        p.results.append(p.op("stablehlo.all_gather", [x], [([d[0] * n, *d[1:]], kind)], f"{groups}, all_gather_dim = 0 : i64, {ch}"))
    elif which == 2:
        p.results.append(p.op("stablehlo.reduce_scatter", [x], [([d[0] // n, *d[1:]], kind)], f"{groups}, scatter_dimension = 0 : i64, {ch}", p.adder(kind)))
    elif which == 3:
        p.results.append(p.op("stablehlo.all_to_all", [x], [(d, kind)], f"{groups}, split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = {n} : i64"))
    else:
        pairs = [[i, (i + 1) % n] for i in range(n)]
        p.results.append(p.op("stablehlo.collective_permute", [x], [(d, kind)], f"source_target_pairs = dense<{pairs}> : tensor<{n}x2xi64>"))
    p.devices = n


def host(p):
    """Through the host: infeed and outfeed, send and receive."""
    d, kind, t = p.shape(1, 4), p.r.choice(["f32", "bf16", "i8"]), "!stablehlo.token"
    p.lines.append(f'%t = "stablehlo.create_token"() : () -> {t}')
    if p.one_in(2):
        p.lines.append(f'%f:2 = "stablehlo.infeed"(%t) {{infeed_config = ""}} : ({t}) -> ({text(d, kind)}, {t})')
        p.results.append(p.op("stablehlo.negate", [("%f#0", d, kind)], [(d, kind)]))
    else:
        x = p.arg(d, kind)
        p.lines.append(f'%o = "stablehlo.outfeed"({x[0]}, %t) {{outfeed_config = ""}} : ({text(d, kind)}, {t}) -> {t}')
        p.results.append(p.op("stablehlo.negate", [x], [(d, kind)]))


def memory_kinds(p):
    """To the host's memory and back."""
    d, kind = p.shape(1, 4), p.r.choice(["f32", "bf16", "i8"])
    x = p.arg(d, kind)
    for to in ["pinned_host", "device"]:
        n = p.name()
        p.lines.append(f'{n} = stablehlo.custom_call @annotate_device_placement({x[0]}) {{mhlo.frontend_attributes = {{_xla_buffer_placement = "{to}"}}, '
                       f'has_side_effect = true}} : ({text(d, kind)}) -> {text(d, kind)}')
        x = n, d, kind
    p.results.append(p.op("stablehlo.add", [x, x], [(d, kind)]))


KINDS = [host, memory_kinds, elementwise, elementwise, special, convert, compare, complexes, broadcast, iota, transpose, reshape, reverse, slices, pad, concatenate, reduce, reduce,
         argmax, window, select_and_scatter, batch_norm, dot, dot, dot, convolution, convolution, convolution, gather, scatter, dynamic, sort, top_k, fft,
         random_bits, rng, cholesky, triangular_solve, linalg_call, loop, branch, bitcast, barrier, softmax, layers, identity, quantized, collective, huge]


def draw(seed, times=1):
    p = Program(seed, times)
    kind = KINDS[seed % len(KINDS)]
    kind(p)
    p.kind = kind.__name__
    return p
