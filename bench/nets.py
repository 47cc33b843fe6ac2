"""Networks, written once for every framework. `F` is a framework's operations (peers/by_*.py), `p` its parameters in the
shape of `init(...)`, a tree of dictionaries and lists of numpy arrays.

The name of a parameter says what it is: "w" a matrix [in, out], "b" a bias, "k" a convolution's kernel [h, w, in, out], "kd" a
depthwise one [h, w, 1, channels], "kt" a transposed one, "gain" and "bias" of a normalisation, "table" rows to look up.
Images are [batch, h, w, channels]; a framework may keep them in another order, so only its operations touch their shape."""
import math

import numpy as np


class Init:
    """Initial values: the same numbers for every framework."""

    def __init__(self, seed=1):
        self.rng = np.random.default_rng(seed)

    def normal(self, *shape, std=1.0):
        return (self.rng.standard_normal(shape, dtype=np.float32) * np.float32(std)).astype(np.float32)

    def ids(self, below, *shape):
        return self.rng.integers(0, below, shape).astype(np.int32)

    def dense(self, n_in, n_out, bias=True):
        p = {"w": self.normal(n_in, n_out, std=1 / math.sqrt(n_in))}
        return dict(p, b=np.zeros(n_out, np.float32)) if bias else p

    def conv(self, side, n_in, n_out, kind="k", sides=2):
        n_in = 1 if kind == "kd" else n_in
        return {kind: self.normal(*(side,) * sides, n_in, n_out, std=math.sqrt(2 / (side ** sides * n_in)))}

    def norm(self, n):
        return {"gain": np.ones(n, np.float32), "bias": np.zeros(n, np.float32)}

    def conv_norm(self, side, n_in, n_out, kind="k", sides=2):
        return dict(self.conv(side, n_in, n_out, kind, sides), **self.norm(n_out))

    def table(self, n, width, std=0.02):
        return {"table": self.normal(n, width, std=std)}


def conv_norm(F, p, x, stride=1, pad=1):
    return F.batch_norm(p, F.conv(p, x, stride, pad))


# ---- images --------------------------------------------------------------------------------------------------------------


class MnistCnn:
    def init(self, i):
        bias = lambda p, n: dict(p, b=np.zeros(n, np.float32))
        return {"c1": bias(i.conv(3, 1, 32), 32), "c2": bias(i.conv(3, 32, 64), 64), "d1": i.dense(9216, 128),
                "d2": i.dense(128, 10)}

    def loss(self, F, p, images, labels):
        x = F.relu(F.conv(p["c1"], images))
        x = F.max_pool(F.relu(F.conv(p["c2"], x)), 2, 2)
        x = F.relu(F.dense(p["d1"], F.flatten(x)))
        return F.cross_entropy(F.dense(p["d2"], x), labels)


class DavidNet:
    def init(self, i):
        widths = dict(prep=(3, 64), l1=(64, 128), r1a=(128, 128), r1b=(128, 128), l2=(128, 256), l3=(256, 512), r3a=(512, 512),
                      r3b=(512, 512))
        return dict({k: i.conv_norm(3, a, b) for k, (a, b) in widths.items()}, fc=i.dense(512, 10, bias=False))

    def loss(self, F, p, images, labels):
        block = lambda name, x: F.relu(conv_norm(F, p[name], x))
        x = F.max_pool(block("l1", block("prep", images)), 2, 2)
        x = x + block("r1b", block("r1a", x))
        x = F.max_pool(block("l2", x), 2, 2)
        x = F.max_pool(block("l3", x), 2, 2)
        x = x + block("r3b", block("r3a", x))
        return F.cross_entropy(F.dense(p["fc"], F.spatial_max(x)) * 0.125, labels)


class ResNet50:
    stages = ((3, 64), (4, 128), (6, 256), (3, 512))

    def init(self, i):
        p, c = {"stem": i.conv_norm(7, 3, 64), "blocks": []}, 64
        for n, width in self.stages:
            for k in range(n):
                block = {"a": i.conv_norm(1, c, width), "b": i.conv_norm(3, width, width), "c": i.conv_norm(1, width, 4 * width)}
                if k == 0:
                    block["s"] = i.conv_norm(1, c, 4 * width)
                p["blocks"].append(block)
                c = 4 * width
        return dict(p, fc=i.dense(2048, 1000))

    def loss(self, F, p, images, labels):
        x = F.max_pool(F.relu(conv_norm(F, p["stem"], images, 2, 3)), 3, 2, 1)
        for n, q in enumerate(p["blocks"]):
            stride = 2 if "s" in q and n else 1
            z = F.relu(conv_norm(F, q["a"], x, 1, 0))
            z = F.relu(conv_norm(F, q["b"], z, stride, 1))
            z = conv_norm(F, q["c"], z, 1, 0)
            x = F.relu(z + (conv_norm(F, q["s"], x, stride, 0) if "s" in q else x))
        return F.cross_entropy(F.dense(p["fc"], F.spatial_mean(x)), labels)


class MobileNet:
    """Inverted residuals with depthwise convolutions, after MobileNetV2: (expansion, channels, repeats, stride)."""
    plan = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

    def strides(self):
        return [stride if k == 0 else 1 for _, _, n, stride in self.plan for k in range(n)]

    def init(self, i):
        p, c = {"stem": i.conv_norm(3, 3, 32), "blocks": []}, 32
        for t, width, n, _ in self.plan:
            for _ in range(n):
                block = {"d": i.conv_norm(3, 1, t * c, "kd"), "c": i.conv_norm(1, t * c, width)}
                p["blocks"].append(dict(block, a=i.conv_norm(1, c, t * c)) if t > 1 else block)
                c = width
        return dict(p, last=i.conv_norm(1, c, 1280), fc=i.dense(1280, 100))

    def loss(self, F, p, images, labels):
        x = F.relu6(conv_norm(F, p["stem"], images, 2, 1))
        for q, stride in zip(p["blocks"], self.strides()):
            z = F.relu6(conv_norm(F, q["a"], x, 1, 0)) if "a" in q else x
            z = F.relu6(conv_norm(F, q["d"], z, stride, 1))
            z = conv_norm(F, q["c"], z, 1, 0)
            x = z + x if z.shape == x.shape else z
        x = F.relu6(conv_norm(F, p["last"], x, 1, 0))
        return F.cross_entropy(F.dense(p["fc"], F.spatial_mean(x)), labels)


class UNet:
    """Of images or, with three sides, of volumes."""

    def __init__(self, widths=(32, 64, 128, 256), n_in=3, sides=2):
        self.widths, self.n_in, self.sides = widths, n_in, sides

    def init(self, i):
        s = dict(sides=self.sides)
        pair = lambda a, b: [i.conv_norm(3, a, b, **s), i.conv_norm(3, b, b, **s)]
        w = self.widths
        return {"down": [pair(a, b) for a, b in zip((self.n_in,) + w, w)], "up": [i.conv(2, b, a, "kt", **s) for a, b in zip(w, w[1:])],
                "join": [pair(2 * a, a) for a in w[:-1]], "out": i.conv(1, w[0], 4, **s)}

    def loss(self, F, p, images, target):
        def pair(q, x):
            for one in q:
                x = F.relu(conv_norm(F, one, x))
            return x
        kept, x = [], images
        for n, q in enumerate(p["down"]):
            x = pair(q, F.max_pool(x, 2, 2) if n else x)
            kept.append(x)
        for level in reversed(range(len(self.widths) - 1)):
            x = F.conv_transposed(p["up"][level], x, 2, 0)
            x = pair(p["join"][level], F.concat_channels([kept[level], x]))
        return F.mean_square(F.conv(p["out"], x), target)


class ConvNeXt:
    """Depthwise 7 x 7, layer norm, two dense layers of the channels; every stage begins with a convolution of patches."""

    def __init__(self, depths=(3, 3, 9, 3), widths=(96, 192, 384, 768)):
        self.depths, self.widths = depths, widths

    def init(self, i):
        def block(w):
            return {"d": dict(i.conv(7, 1, w, "kd"), b=np.zeros(w, np.float32)), "n": i.norm(w), "up": i.dense(w, 4 * w),
                    "down": i.dense(4 * w, w), "scale": {"gain": np.full(w, 0.1, np.float32)}}
        w = self.widths
        return {"patch": [dict(i.conv(4 if k == 0 else 2, a, b), b=np.zeros(b, np.float32)) for k, (a, b) in enumerate(zip((3,) + w, w))],
                "stem": i.norm(w[0]), "norm": [i.norm(a) for a in w[:-1]], "h": [[block(b) for _ in range(n)] for n, b in zip(self.depths, w)], "last": i.norm(w[-1]),
                "out": i.dense(w[-1], 1000)}

    def loss(self, F, p, images, labels):
        x = images
        for k, blocks in enumerate(p["h"]):
            if k:
                x = F.channels(lambda z: F.layer_norm(p["norm"][k - 1], z), x)
            x = F.conv(p["patch"][k], x, 2 if k else 4, 0)
            if k == 0:
                x = F.channels(lambda z: F.layer_norm(p["stem"], z), x)
            for q in blocks:
                x = x + F.channels(lambda z: self.mixed(F, q, z), F.conv(q["d"], x, 1, 3))
        return F.cross_entropy(F.dense(p["out"], F.layer_norm(p["last"], F.spatial_mean(x))), labels)

    def mixed(self, F, q, z):
        return F.dense(q["down"], F.gelu(F.dense(q["up"], F.layer_norm(q["n"], z)), exact=True)) * q["scale"]["gain"]


class DiffusionUNet:
    """As in DDPM: residual blocks with group norm and the time's embedding, attention on the two lowest levels, the noise as target."""
    widths, heads = (64, 128, 256), 4

    def init(self, i):
        bias = lambda p, n: dict(p, b=np.zeros(n, np.float32))

        def res(a, b):
            q = {"n1": i.norm(a), "c1": bias(i.conv(3, a, b), b), "time": i.dense(256, b), "n2": i.norm(b), "c2": bias(i.conv(3, b, b), b)}
            return dict(q, skip=i.conv(1, a, b)) if a != b else q
        attend = lambda w: {"n": i.norm(w), "qkv": i.dense(w, 3 * w), "o": i.dense(w, w)}
        w = self.widths
        return {"time": [i.dense(64, 256), i.dense(256, 256)], "in": bias(i.conv(3, 3, w[0]), w[0]),
                "down": [{"r": res(a, b), "a": attend(b)} for a, b in zip((w[0],) + w, w)],
                "small": [bias(i.conv(3, a, a), a) for a in w[:-1]], "mid": {"r": res(w[-1], w[-1]), "a": attend(w[-1])},
                "up": [{"r": res(2 * b, a), "a": attend(a)} for a, b in zip((w[0],) + w, w)],
                "n": i.norm(w[0]), "out": bias(i.conv(3, w[0], 3), 3)}

    def res(self, F, q, x, t):
        z = F.conv(q["c1"], F.silu(F.group_norm(q["n1"], x, 8)), 1, 1)
        z = F.each_channel(z, F.dense(q["time"], t))
        z = F.conv(q["c2"], F.silu(F.group_norm(q["n2"], z, 8)), 1, 1)
        return z + (F.conv(q["skip"], x, 1, 0) if "skip" in q else x)

    def attend(self, F, q, x):
        def mix(z):
            b, h, w, c = z.shape
            return F.reshape(self_attention(F, q, F.reshape(z, (b, h * w, c)), self.heads, False), (b, h, w, c))
        return x + F.channels(mix, F.group_norm(q["n"], x, 8))

    def loss(self, F, p, images, noise, time):
        t = F.dense(p["time"][1], F.silu(F.dense(p["time"][0], time)))
        x, kept, n = F.conv(p["in"], images, 1, 1), [], len(self.widths)
        for k, q in enumerate(p["down"]):
            x = self.res(F, q["r"], x, t)
            x = self.attend(F, q["a"], x) if k else x
            kept.append(x)
            if k < n - 1:
                x = F.conv(p["small"][k], x, 2, 1)
        x = self.attend(F, p["mid"]["a"], self.res(F, p["mid"]["r"], x, t))
        for k in reversed(range(n)):
            x = self.res(F, p["up"][k]["r"], F.concat_channels([x, kept[k]]), t)
            x = self.attend(F, p["up"][k]["a"], x) if k else x
            x = F.twice_as_large(x) if k else x
        return F.mean_square(F.conv(p["out"], F.silu(F.group_norm(p["n"], x, 8)), 1, 1), noise)


class Fno:
    """A Fourier neural operator of a plane: products of the lowest frequencies, beside a dense layer of the channels."""

    def __init__(self, layers=4, width=32, modes=12):
        self.layers, self.width, self.modes = layers, width, modes

    def init(self, i):
        w, m = self.width, self.modes
        weights = lambda: i.normal(2, m, m, w, w, std=1 / w)
        return {"lift": i.dense(3, w), "h": [{"f": {"real": weights(), "imag": weights()}, "d": i.dense(w, w)} for _ in range(self.layers)],
                "down": [i.dense(w, 128), i.dense(128, 1)]}

    def loss(self, F, p, x, wanted):
        x = F.channels(lambda z: F.dense(p["lift"], z), x)
        for q in p["h"]:
            x = F.gelu(F.spectral(q["f"], x, self.modes) + F.channels(lambda z: F.dense(q["d"], z), x), exact=False)
        x = F.channels(lambda z: F.dense(p["down"][1], F.gelu(F.dense(p["down"][0], z), exact=False)), x)
        return F.mean_square(x, wanted)


class ConvVae:
    """Strided convolutions down to a code, transposed ones up again, as in DCGAN; the noise is an input."""

    def init(self, i):
        w = (3, 32, 64, 128)
        return {"down": [i.conv_norm(4, a, b) for a, b in zip(w, w[1:])], "mean": i.dense(8 * 8 * 128, 64),
                "spread": i.dense(8 * 8 * 128, 64), "start": i.dense(64, 8 * 8 * 128),
                "up": [i.conv(4, b, a, "kt") for a, b in reversed(list(zip(w, w[1:])))],
                "norms": [i.norm(n) for n in (64, 32)]}

    def loss(self, F, p, images, noise):
        x = images
        for q in p["down"]:
            x = F.leaky_relu(conv_norm(F, q, x, 2, 1))
        x = F.flatten(x)
        mean, spread = F.dense(p["mean"], x), F.dense(p["spread"], x)
        x = F.relu(F.dense(p["start"], mean + F.exp(spread * 0.5) * noise))
        x = F.image(x, 8, 8, 128)
        for n, q in enumerate(p["up"]):
            x = F.conv_transposed(q, x, 2, 1)
            if n < 2:
                x = F.relu(F.batch_norm(p["norms"][n], x))
        return F.mean_square(F.tanh(x), images) + F.mean(mean * mean + F.exp(spread) - spread - 1.0) * 0.5


# ---- dense, recurrent ----------------------------------------------------------------------------------------------------


class Mlp:
    def __init__(self, *widths):
        self.widths = widths

    def init(self, i):
        return [i.dense(a, b) for a, b in zip(self.widths, self.widths[1:])]

    def loss(self, F, p, x, labels):
        for q in p[:-1]:
            x = F.relu(F.dense(q, x))
        return F.cross_entropy(F.dense(p[-1], x), labels)


class Recurrent:
    """Embedding, layers of `kind` ("lstm": gates i, f, g, o; "gru": r, z, n), dense."""

    def __init__(self, kind, layers, width, vocab):
        self.kind, self.layers, self.width, self.vocab = kind, layers, width, vocab

    def init(self, i):
        gates = {"lstm": 4, "gru": 3}[self.kind] * self.width
        cell = lambda: {"x": i.dense(self.width, gates), "h": i.dense(self.width, gates, bias=False)}
        return {"emb": i.table(self.vocab, self.width, std=0.5), "cells": [cell() for _ in range(self.layers)],
                "out": i.dense(self.width, self.vocab)}

    def loss(self, F, p, tokens, labels):
        x = F.embedding(p["emb"], tokens)
        for q in p["cells"]:
            x = getattr(F, self.kind)(q, x, self.width)
        return F.cross_entropy(F.dense(p["out"], x), labels)


# ---- transformers --------------------------------------------------------------------------------------------------------


def self_attention(F, p, x, heads, causal, turn=None):
    b, t, width = x.shape
    split = lambda z: F.transpose(F.reshape(z, (b, t, heads, width // heads)), (0, 2, 1, 3))
    q, k, v = (split(z) for z in F.split(F.dense(p["qkv"], x), 3))
    if turn:
        q, k = turn(q), turn(k)
    z = F.attention(q, k, v, causal)
    return F.dense(p["o"], F.reshape(F.transpose(z, (0, 2, 1, 3)), (b, t, width)))


def block_params(i, width, bias=True):
    return {"n1": i.norm(width), "qkv": i.dense(width, 3 * width), "o": i.dense(width, width), "n2": i.norm(width),
            "up": i.dense(width, 4 * width), "down": i.dense(4 * width, width)}


class Gpt:
    def __init__(self, layers, width, vocab, time):
        self.layers, self.width, self.vocab, self.time = layers, width, vocab, time

    def init(self, i):
        return {"wte": i.table(self.vocab, self.width), "wpe": i.table(self.time, self.width),
                "h": [block_params(i, self.width) for _ in range(self.layers)], "last": i.norm(self.width)}

    def loss(self, F, p, tokens, labels):
        x = F.embedding(p["wte"], tokens) + p["wpe"]["table"]
        for h in p["h"]:
            x = x + self_attention(F, h, F.layer_norm(h["n1"], x), self.width // 64, True)
            x = x + F.dense(h["down"], F.gelu(F.dense(h["up"], F.layer_norm(h["n2"], x)), exact=False))
        return F.cross_entropy(F.tied(p["wte"], F.layer_norm(p["last"], x)), labels)


class Bert(Gpt):
    def loss(self, F, p, tokens, labels):
        x = F.layer_norm(p["last"], F.embedding(p["wte"], tokens) + p["wpe"]["table"])
        for h in p["h"]:
            x = F.layer_norm(h["n1"], x + self_attention(F, h, x, self.width // 64, False))
            x = F.layer_norm(h["n2"], x + F.dense(h["down"], F.gelu(F.dense(h["up"], x), exact=True)))
        return F.cross_entropy(F.tied(p["wte"], x), labels)


class Llama:
    """Rotary positions, RMS norm, gated SiLU."""

    def __init__(self, layers, width, hidden, vocab, time):
        self.layers, self.width, self.hidden, self.vocab, self.time = layers, width, hidden, vocab, time

    def init(self, i):
        w = self.width
        block = lambda: {"n1": i.norm(w), "qkv": i.dense(w, 3 * w, False), "o": i.dense(w, w, False), "n2": i.norm(w),
                         "gate": i.dense(w, self.hidden, False), "up": i.dense(w, self.hidden, False),
                         "down": i.dense(self.hidden, w, False)}
        return {"wte": i.table(self.vocab, w), "h": [block() for _ in range(self.layers)], "last": i.norm(w),
                "out": i.dense(w, self.vocab, False)}

    def loss(self, F, p, tokens, labels):
        half = 32
        angle = np.outer(np.arange(self.time), 10000.0 ** (-np.arange(half) / half))
        cos, sin = F.array(np.cos(angle).astype(np.float32)), F.array(np.sin(angle).astype(np.float32))

        def turn(x):
            a, b = F.split(x, 2)
            return F.concat([a * cos - b * sin, a * sin + b * cos], -1)
        x = F.embedding(p["wte"], tokens)
        for h in p["h"]:
            x = x + self_attention(F, h, F.rms_norm(h["n1"], x), self.width // 64, True, turn)
            z = F.rms_norm(h["n2"], x)
            x = x + F.dense(h["down"], F.silu(F.dense(h["gate"], z)) * F.dense(h["up"], z))
        return F.cross_entropy(F.dense(p["out"], F.rms_norm(p["last"], x)), labels)


class Vit:
    def __init__(self, layers, width, side, patch):
        self.layers, self.width, self.tokens, self.patch = layers, width, (side // patch) ** 2, patch

    def init(self, i):
        return {"patch": i.conv(self.patch, 3, self.width), "wpe": i.table(self.tokens, self.width),
                "h": [block_params(i, self.width) for _ in range(self.layers)], "last": i.norm(self.width),
                "out": i.dense(self.width, 1000)}

    def loss(self, F, p, images, labels):
        x = F.conv(p["patch"], images, self.patch, 0)
        x = F.reshape(F.flatten(x), (images.shape[0], self.tokens, self.width)) + p["wpe"]["table"]
        for h in p["h"]:
            x = x + self_attention(F, h, F.layer_norm(h["n1"], x), self.width // 64, False)
            x = x + F.dense(h["down"], F.gelu(F.dense(h["up"], F.layer_norm(h["n2"], x)), exact=True))
        return F.cross_entropy(F.dense(p["out"], F.mean(F.layer_norm(p["last"], x), 1)), labels)


class MixtureOfExperts:
    """Transformer blocks whose dense layers are two of several experts."""

    def __init__(self, layers, width, experts, vocab):
        self.layers, self.width, self.experts, self.vocab = layers, width, experts, vocab

    def init(self, i):
        w, n = self.width, self.experts
        each = lambda a, b: {"each": i.normal(n, a, b, std=1 / math.sqrt(a))}
        block = lambda: {"n1": i.norm(w), "qkv": i.dense(w, 3 * w), "o": i.dense(w, w), "n2": i.norm(w),
                         "moe": {"gate": i.dense(w, n, False), "up": each(w, 4 * w), "down": each(4 * w, w)}}
        return {"wte": i.table(self.vocab, w), "h": [block() for _ in range(self.layers)], "last": i.norm(w)}

    def loss(self, F, p, tokens, labels):
        x = F.embedding(p["wte"], tokens)
        for h in p["h"]:
            x = x + self_attention(F, h, F.layer_norm(h["n1"], x), self.width // 64, True)
            rows = F.reshape(F.layer_norm(h["n2"], x), (-1, self.width))
            x = x + F.reshape(F.experts(h["moe"], rows, 2), x.shape)
        return F.cross_entropy(F.tied(p["wte"], F.layer_norm(p["last"], x)), labels)


def token_step(F, p, x, caches, at, heads):
    """A token through a Llama whose keys and values of `at` tokens before it are in caches: [batch, heads, time, width]."""
    width = x.shape[-1]
    split = lambda z: F.transpose(F.reshape(z, (1, 1, heads, width // heads)), (0, 2, 1, 3))
    for h, (keys, values) in zip(p["h"], caches):
        q, k, v = (split(z) for z in F.split(F.dense(h["qkv"], F.rms_norm(h["n1"], x)), 3))
        keys, values = F.put_row(keys, k, at), F.put_row(values, v, at)
        x = x + F.dense(h["o"], F.reshape(F.attention(q, keys, values, False), (1, 1, width)))
        z = F.rms_norm(h["n2"], x)
        x = x + F.dense(h["down"], F.silu(F.dense(h["gate"], z)) * F.dense(h["up"], z))
    return F.dense(p["out"], F.rms_norm(p["last"], x))


# ---- recommendation ------------------------------------------------------------------------------------------------------


class Dlrm:
    """Dense features through an MLP, ids through tables, their inner products through another MLP."""

    def __init__(self, tables=26, rows=20000, width=32, dense=13):
        self.tables, self.rows, self.width, self.dense = tables, rows, width, dense

    def init(self, i):
        bottom, n = (self.dense, 256, 64, self.width), self.tables + 1
        top = (self.width + n * (n - 1) // 2, 512, 256, 1)
        return {"tables": [i.table(self.rows, self.width, std=0.1) for _ in range(self.tables)],
                "bottom": [i.dense(a, b) for a, b in zip(bottom, bottom[1:])], "top": [i.dense(a, b) for a, b in zip(top, top[1:])]}

    def loss(self, F, p, x, ids, labels):
        for q in p["bottom"]:
            x = F.relu(F.dense(q, x))
        rows = F.stack([x] + [F.embedding(t, ids[:, k]) for k, t in enumerate(p["tables"])], 1)
        z = F.concat([x, F.lower_triangle(F.matmul(rows, F.transpose(rows, (0, 2, 1))))], -1)
        for q in p["top"][:-1]:
            z = F.relu(F.dense(q, z))
        return F.logistic_loss(F.dense(p["top"][-1], z)[:, 0], labels)


# ---- no networks, or small ones in loops ---------------------------------------------------------------------------------


def bodies(F, x, v, mass, steps):
    """Leapfrog steps of bodies that attract each other."""
    def step(x, v):
        d = x[None, :, :] - x[:, None, :]
        near = F.total(d * d, -1) + 1e-2
        pull = mass[None, :] / (near * F.sqrt(near))
        v = v + 1e-3 * F.total(d * pull[:, :, None], 1)
        return x + 1e-3 * v, v
    return F.loop(steps, step, (x, v))[0]


def k_means(F, x, centers, steps):
    n = centers.shape[0]

    def step(centers, _):
        far = F.total(centers * centers, -1)[None, :] - 2.0 * F.matmul(x, F.transpose(centers, (1, 0)))
        ids = F.argmin(far)
        centers = F.segment_sum(x, ids, n) / F.maximum(F.counts(ids, n), 1.0)[:, None]
        return centers, centers
    return F.loop(steps, step, (centers, centers))[0]


def gaussian_process(F, x, y, logs):
    """Minus the logarithm of the likelihood; logs: of the length, the deviation, the noise."""
    n, scale = x.shape[0], F.exp(logs)
    squares = F.total(x * x, -1)
    far = squares[:, None] + squares[None, :] - 2.0 * F.matmul(x, F.transpose(x, (1, 0)))
    low = F.cholesky(scale[1] * F.exp(-0.5 * far / scale[0]) + scale[2] * F.unit(n))
    z = F.solve_lower(low, y)
    return (0.5 * F.total(z * z, 0) + F.total(F.log(F.diagonal(low)), 0)) / n


def cart_poles(F, p, state, steps):
    """Poles on carts, steered by a small network: the sum of what they are rewarded with."""
    def step(x, v, a, w, sum):
        force = 10.0 * F.tanh(F.dense(p[1], F.tanh(F.dense(p[0], F.stack([x, v, a, w], -1)))))[:, 0]
        sine, cosine = F.sin(a), F.cos(a)
        t = (force + 0.05 * w * w * sine) / 1.1
        turn = (9.8 * sine - cosine * t) / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1))
        push = t - 0.05 * turn * cosine / 1.1
        fell = (F.abs_(a) > 0.2095) | (F.abs_(x) > 2.4)
        x, v, a, w = (F.where(fell, z * 0.0, z) for z in (x + 0.02 * v, v + 0.02 * push, a + 0.02 * w, w + 0.02 * turn))
        return x, v, a, w, sum + F.where(fell, F.abs_(x) * 0.0, F.abs_(x) * 0.0 + 1.0)
    zero = state[:, 0] * 0.0
    return F.loop(steps, step, (state[:, 0], state[:, 1], state[:, 2], state[:, 3], zero))[4]


# ---- programs that are no stack of layers --------------------------------------------------------------------------------


class Nerf:
    """A radiance field: colours of rays, from points along them by a network of their coordinates' sines and cosines."""

    def __init__(self, points, width, layers=4, octaves=10):
        self.points, self.width, self.layers, self.octaves = points, width, layers, octaves

    def init(self, i):
        w = self.width
        return {"in": i.dense(3 + 6 * self.octaves, w), "inner": [i.dense(w, w) for _ in range(self.layers - 1)], "out": i.dense(w, 4)}

    def loss(self, F, p, origins, directions, wanted):
        at = F.array(np.linspace(2, 6, self.points, dtype=np.float32))[:, None]
        x = origins[:, None] + directions[:, None] * at
        waves = F.reshape(x[..., None] * F.array(2.0 ** np.arange(self.octaves, dtype=np.float32)), (*x.shape[:2], 3 * self.octaves))
        y = F.relu(F.dense(p["in"], F.concat([x, F.sin(waves), F.cos(waves)], -1)))
        for q in p["inner"]:
            y = F.relu(F.dense(q, y))
        y = F.dense(p["out"], y)
        dense = F.relu(y[..., 3]) * (4 / (self.points - 1))
        seen = F.exp(dense - F.cumsum(dense)) * (1.0 - F.exp(-dense))  # of what the points before let pass
        return F.mean_square(F.total(seen[..., None] * F.sigmoid(y[..., :3]), 1), wanted)


class VqVae:
    """Images through the nearest of some vectors, whose gradient is that of what they stand for."""

    def init(self, i):
        return {"down": [i.conv(4, 3, 64), i.conv(4, 64, 128)], "code": i.table(512, 128, 0.1),
                "up": [i.conv(4, 128, 64, "kt"), i.conv(4, 64, 3, "kt")]}

    def loss(self, F, p, x):
        y, table, losses = x, p["code"]["table"], []
        for k, q in enumerate(p["down"]):
            y = F.conv(q, F.relu(y) if k else y, 2, 1)

        def quantize(z):
            flat = F.reshape(z, (-1, z.shape[-1]))
            far = F.total(table * table, -1)[None, :] - 2.0 * F.matmul(flat, F.transpose(table, (1, 0)))
            q = F.reshape(F.rows(table, F.argmin(far)), z.shape)
            losses.append(F.mean_square(F.stopped(z), q) + 0.25 * F.mean_square(z, F.stopped(q)))
            return z + F.stopped(q - z)
        y = F.channels(quantize, y)
        y = F.conv_transposed(p["up"][1], F.relu(F.conv_transposed(p["up"][0], y, 2, 1)), 2, 1)
        return F.mean_square(y, x) + losses[0]


class Speech:
    """Letters of recordings that are not aligned with them: connectionist temporal classification."""

    def __init__(self, bands, width, letters):
        self.bands, self.width, self.letters = bands, width, letters

    def init(self, i):
        return {"in": i.dense(self.bands, self.width), "inner": i.dense(self.width, self.width), "out": i.dense(self.width, self.letters)}

    def loss(self, F, p, x, labels):
        return F.ctc(F.dense(p["out"], F.relu(F.dense(p["inner"], F.relu(F.dense(p["in"], x))))), labels)


class Ppo:
    """Proximal policy optimization over what some environments did, its advantages from the last step to the first (time runs
    backwards in the batch)."""

    def __init__(self, seen, width, actions):
        self.seen, self.width, self.actions = seen, width, actions

    def init(self, i):
        return {"in": i.dense(self.seen, self.width), "inner": i.dense(self.width, self.width), "policy": i.dense(self.width, self.actions),
                "value": i.dense(self.width, 1)}

    def loss(self, F, p, x, actions, rewards, ends, before):
        y = F.tanh(F.dense(p["inner"], F.tanh(F.dense(p["in"], x))))
        values = F.dense(p["value"], y)[..., 0]
        known = F.stopped(values)

        def step(state, now):
            (advantage, later), (reward, end, value) = state, now
            advantage = reward + 0.99 * later * (1.0 - end) - value + 0.99 * 0.95 * (1.0 - end) * advantage
            return (advantage, value), advantage
        advantages = F.scan(step, (known[0] * 0.0, known[0]), (rewards, ends, known))
        ratio = F.exp(F.log_prob(F.dense(p["policy"], y), actions) - before)
        centred = advantages - F.mean(advantages)
        scaled = centred / (F.sqrt(F.mean(centred * centred)) + 1e-8)
        return F.mean_square(values, advantages + known) - F.mean(F.minimum(ratio * scaled, F.clip(ratio, 0.8, 1.2) * scaled))


class Mamba:
    """A layer whose state is carried through time by what each token says of how long to keep it."""

    def __init__(self, width, inner, states):
        self.width, self.inner, self.states = width, inner, states

    def init(self, i):
        d, n = self.inner, self.states
        return {"in": i.dense(self.width, 2 * d, False), "mix": {"kc": i.normal(4, 1, d, std=0.3)}, "choose": i.dense(d, 2 * n, False),
                "time": i.dense(d, d), "decay": np.log(np.tile(np.arange(1, n + 1, dtype=np.float32), (d, 1))), "skip": np.ones(d, np.float32),
                "out": i.dense(d, self.width, False)}

    def loss(self, F, p, x, wanted):
        u, gate = F.split(F.dense(p["in"], x), 2)
        u = F.silu(F.conv_causal(p["mix"], u))
        write, read = F.split(F.dense(p["choose"], u), 2)
        y = F.selective_scan(u, F.softplus(F.dense(p["time"], u)), -F.exp(p["decay"]), write, read) + p["skip"] * u
        return F.mean_square(F.dense(p["out"], y * F.silu(gate)), wanted)


# ---- graphs --------------------------------------------------------------------------------------------------------------


class GraphNet:
    """Messages along edges, summed at their target, three rounds; the target is one number a node."""

    def __init__(self, nodes, width):
        self.nodes, self.width = nodes, width

    def init(self, i):
        w = self.width
        return {"rounds": [{"edge": i.dense(2 * w, w), "node": i.dense(2 * w, w)} for _ in range(3)], "out": i.dense(w, 1)}

    def loss(self, F, p, x, source, target, wanted):
        for q in p["rounds"]:
            message = F.relu(F.dense(q["edge"], F.concat([F.rows(x, source), F.rows(x, target)], -1)))
            x = x + F.tanh(F.dense(q["node"], F.concat([x, F.segment_sum(message, target, self.nodes) * 0.1], -1)))
        return F.mean_square(F.dense(p["out"], x), wanted)


class GraphAttention:
    """Two rounds in which each node weighs what its neighbours say, several times over."""

    def __init__(self, nodes, width, heads):
        self.nodes, self.width, self.heads = nodes, width, heads

    def init(self, i):
        h, d = self.heads, self.width // self.heads
        return {"rounds": [{"all": i.dense(self.width, self.width, False), "from": i.normal(h, d, std=0.2), "to": i.normal(h, d, std=0.2)}
                           for _ in range(2)], "out": i.dense(self.width, 1)}

    def loss(self, F, p, x, source, target, wanted):
        h, d = self.heads, self.width // self.heads
        for q in p["rounds"]:
            y = F.dense(q["all"], x)
            each = F.reshape(y, (-1, h, d))
            score = F.leaky_relu(F.rows(F.total(each * q["from"], -1), source) + F.rows(F.total(each * q["to"], -1), target))
            weight = F.exp(score - F.rows(F.segment_max(F.stopped(score), target, self.nodes), target))
            weight = weight / (F.rows(F.segment_sum(weight, target, self.nodes), target) + 1e-9)
            message = F.reshape(F.rows(y, source), (-1, h, d)) * weight[..., None]
            x = x + F.tanh(F.segment_sum(F.reshape(message, (-1, h * d)), target, self.nodes))
        return F.mean_square(F.dense(p["out"], x), wanted)
