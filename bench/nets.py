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

    def conv(self, side, n_in, n_out, kind="k"):
        shape = {"k": (side, side, n_in, n_out), "kd": (side, side, 1, n_out), "kt": (side, side, n_in, n_out)}[kind]
        return {kind: self.normal(*shape, std=math.sqrt(2 / (side * side * shape[2])))}

    def norm(self, n):
        return {"gain": np.ones(n, np.float32), "bias": np.zeros(n, np.float32)}

    def conv_norm(self, side, n_in, n_out, kind="k"):
        return dict(self.conv(side, n_in, n_out, kind), **self.norm(n_out))

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
    widths = (32, 64, 128, 256)

    def init(self, i):
        pair = lambda a, b: [i.conv_norm(3, a, b), i.conv_norm(3, b, b)]
        w = self.widths
        return {"down": [pair(a, b) for a, b in zip((3,) + w, w)], "up": [i.conv(2, b, a, "kt") for a, b in zip(w, w[1:])],
                "join": [pair(2 * a, a) for a in w[:-1]], "out": i.conv(1, w[0], 4)}

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
