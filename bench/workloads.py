"""What is measured: networks that train (nets.py) and single operations, with their shapes and inputs.

WORKLOADS[name]() gives a Train or an Op; making one costs nothing, its numbers are made by `values`. What every framework does
with one is in peers/. ROWS lists the names in the table's order."""
import dataclasses
import typing

import numpy as np

import nets
from nets import Init

ADAM = dict(kind="adam", lr=1e-4, beta1=0.9, beta2=0.999, eps=1e-7)
SGD = dict(kind="sgd", lr=0.1)
MOMENTUM = dict(kind="momentum", lr=1e-3, momentum=0.9, decay=5e-4)  # Nesterov, the decay added to the gradient


@dataclasses.dataclass
class Train:
    """A training step: `net`'s loss of a batch, its gradients, the optimizer's update."""
    net: object
    batch: typing.Callable  # Init -> tuple of arrays
    optimizer: dict
    bf16: bool = False  # parameters stay f32, everything computed from them is bfloat16
    steps: int = 5

    def values(self):
        i = Init()
        params = self.net.init(i)
        return params, self.batch(i)


@dataclasses.dataclass
class Op:
    """One call of an operation: fn(F, *inputs). `grad`: the gradients of its sum with regard to the first `grad` inputs."""
    fn: typing.Callable
    inputs: typing.Callable  # Init -> tuple of arrays
    grad: int = 0
    bf16: bool = False
    kernels: tuple = ()  # positions of inputs that are convolution kernels
    images: tuple = ()  # positions of inputs that are images
    flops: float = 0
    compare: bool = True  # outputs are the same numbers everywhere
    bounded: bool = True  # by its flops or its bytes
    steps: int = 15

    def values(self):
        return self.inputs(Init())


def images(n, side, channels, classes):
    return lambda i: (i.normal(n, side, side, channels), i.ids(classes, n))


def tokens(n, time, vocab):
    return lambda i: (i.ids(vocab, n, time), i.ids(vocab, n, time))


def mlp(batch=256, widths=(784, 4096, 4096, 10), **more):
    return Train(nets.Mlp(*widths), lambda i: (i.normal(batch, widths[0]), i.ids(widths[-1], batch)), ADAM, **more)


def gpt2(batch, time, **more):
    return Train(nets.Gpt(12, 768, 50257, time), tokens(batch, time, 50257), ADAM, steps=3, **more)


def davidnet(batch, **more):
    return Train(nets.DavidNet(), images(batch, 32, 3, 10), MOMENTUM, steps=3, **more)


def unet(i):
    return i.normal(4, 128, 128, 3), i.normal(4, 128, 128, 4)


def volumes(i):
    return i.normal(1, 32, 64, 64, 1), i.normal(1, 32, 64, 64, 4)


def noisy(i):
    return i.normal(8, 32, 32, 3), i.normal(8, 32, 32, 3), i.normal(8, 64)


def plane(i):
    return i.normal(8, 64, 64, 3), i.normal(8, 64, 64, 1)


def clicks(i, batch=2048):
    return i.normal(batch, 13), i.ids(20000, batch, 26), i.ids(2, batch).astype("float32")


def rays(i, n=512):
    return i.normal(n, 3), i.normal(n, 3), i.normal(n, 3)


def recordings(i, n=16, time=200, bands=80, letters=32, length=30):
    return i.normal(n, time, bands), i.ids(letters - 1, n, length) + np.int32(1)


def played(i, time=128, n=32, seen=24, actions=6):
    ends = (i.normal(time, n) > 2).astype("float32")
    return i.normal(time, n, seen), i.ids(actions, time, n), i.normal(time, n), ends, i.normal(time, n, std=0.1) - np.float32(1.8)


def graph(i, nodes=20000, edges=100000, width=64):
    return i.normal(nodes, width), i.ids(nodes, edges), i.ids(nodes, edges), i.normal(nodes, 1)


TRAIN = {
    "mnist_cnn": lambda: Train(nets.MnistCnn(), images(128, 28, 1, 10), ADAM),
    "mlp": mlp,
    "lstm": lambda: Train(nets.Recurrent("lstm", 2, 512, 256), tokens(32, 64, 256), ADAM),
    "davidnet_128": lambda: davidnet(128),
    "davidnet_512": lambda: davidnet(512),
    "resnet50_8": lambda: Train(nets.ResNet50(), images(8, 224, 3, 1000), MOMENTUM, steps=3),
    "gpt2_4x64": lambda: gpt2(4, 64),
    "gpt2_4x256": lambda: gpt2(4, 256),
    "bert_8x128": lambda: Train(nets.Bert(12, 768, 30522, 128), tokens(8, 128, 30522), ADAM, steps=3),
    "vit_tiny_8": lambda: Train(nets.Vit(12, 192, 224, 16), images(8, 224, 3, 1000), ADAM),
    "mobilenet_16": lambda: Train(nets.MobileNet(), images(16, 96, 3, 100), MOMENTUM),
    "unet_4": lambda: Train(nets.UNet(), unet, ADAM),
    "conv_vae_32": lambda: Train(nets.ConvVae(), lambda i: (i.normal(32, 64, 64, 3), i.normal(32, 64)), ADAM),
    "gru": lambda: Train(nets.Recurrent("gru", 1, 256, 128), tokens(64, 50, 128), ADAM),
    "llama_4x256": lambda: Train(nets.Llama(6, 512, 1376, 8192, 256), tokens(4, 256, 8192), ADAM),
    "graph": lambda: Train(nets.GraphNet(20000, 64), graph, ADAM),
    "convnext_4": lambda: Train(nets.ConvNeXt(), images(4, 224, 3, 1000), ADAM, steps=3),
    "unet_3d": lambda: Train(nets.UNet((16, 32, 64), 1, 3), volumes, ADAM),
    "diffusion_8": lambda: Train(nets.DiffusionUNet(), noisy, ADAM),
    "fno_8": lambda: Train(nets.Fno(), plane, ADAM),
    "moe_4x256": lambda: Train(nets.MixtureOfExperts(4, 256, 8, 8192), tokens(4, 256, 8192), ADAM),
    "dlrm_2048": lambda: Train(nets.Dlrm(), clicks, SGD, steps=20),
    "graph_attention": lambda: Train(nets.GraphAttention(20000, 64, 4), graph, ADAM),
    "nerf_512": lambda: Train(nets.Nerf(48, 128), rays, ADAM, steps=10),
    "vq_vae_32": lambda: Train(nets.VqVae(), lambda i: (i.normal(32, 32, 32, 3),), ADAM, steps=10),
    "ctc_16": lambda: Train(nets.Speech(80, 256, 32), recordings, ADAM, steps=20),
    "ppo_128x32": lambda: Train(nets.Ppo(24, 64, 6), played, ADAM, steps=50),
    "mamba_2x256": lambda: Train(nets.Mamba(128, 256, 16), lambda i: (i.normal(2, 256, 128), i.normal(2, 256, 128)), ADAM, steps=10),
    "mlp_small": lambda: mlp(32, (64, 128, 128, 10), steps=200),
}


def in_bf16(name):
    return lambda: dataclasses.replace(TRAIN[name](), bf16=True)


BF16 = {f"{n}_bf16": in_bf16(n) for n in (
    "mlp", "davidnet_128", "gpt2_4x64", "mnist_cnn", "bert_8x128", "resnet50_8", "mobilenet_16", "unet_4", "conv_vae_32", "vit_tiny_8", "lstm")}


def square(n):
    return lambda i: (i.normal(n, n),)


def matmul(m, n, k, left="N", right="N", **more):
    a, b = (m, k) if left == "N" else (k, m), (k, n) if right == "N" else (n, k)
    return Op(lambda F, x, y: F.matmul(x if left == "N" else F.transpose(x, (1, 0)), y if right == "N" else F.transpose(y, (1, 0))),
              lambda i: (i.normal(*a), i.normal(*b)), flops=2.0 * m * n * k, **more)


def conv(batch, side, n_in, n_out, k, stride=1, grad=0, kind="k"):
    def inputs(i):
        return i.normal(batch, side, side, n_in), i.conv(k, n_in, n_out, kind)[kind]
    out = side // stride
    return Op(lambda F, x, w: F.conv({kind: w}, x, stride, k // 2), inputs, grad=grad, images=(0,), kernels=(1,),
              flops=2.0 * batch * out * out * k * k * (n_in if kind == "k" else 1) * n_out * (1 + grad))


def attention(heads, rows, columns, width=64, causal=False, grad=0, steps=5, **more):
    """Of one sequence; rows: queries. 1: a token that is decoded with a cache of keys and values."""
    return Op(lambda F, q, k, v: F.attention(q, k, v, causal),
              lambda i: (i.normal(1, heads, rows, width), i.normal(1, heads, columns, width), i.normal(1, heads, columns, width)), grad=grad,
              flops=4.0 * heads * rows * columns * width * (1 + 2.5 * (grad > 0)) / (1 + causal), steps=steps, **more)


def token(i, layers=8, width=512, hidden=1376, vocab=32000, time=1024, heads=8):
    """Weights, the token's row and a cache for each layer."""
    cache = lambda: i.normal(1, heads, time, width // heads)
    return nets.Llama(layers, width, hidden, vocab, time).init(i), i.normal(1, 1, width), *(cache() for _ in range(2 * layers))


def llama_token(F, p, x, *caches):
    return nets.token_step(F, p, x, list(zip(caches[::2], caches[1::2])), 1023, 8)


def process(i, n=1024):
    return i.normal(n, 4), i.normal(n), i.normal(3, std=0.1)


OPS = {
    "gelu_layer_norm": lambda: Op(lambda F, x, g, b: F.gelu(F.layer_norm({"gain": g, "bias": b}, x), exact=False),
                                  lambda i: (i.normal(4096, 4096), i.normal(4096), i.normal(4096))),
    "softmax": lambda: Op(lambda F, x: F.softmax(x), square(4096)),
    "attention_2048": lambda: attention(8, 2048, 2048),
    "attention_2048_grad": lambda: attention(8, 2048, 2048, grad=3),
    "attention_4096_causal": lambda: attention(8, 4096, 4096, causal=True, steps=3),
    "attention_4096_causal_grad": lambda: attention(8, 4096, 4096, causal=True, grad=3, steps=3),
    "attention_2048_bf16": lambda: attention(8, 2048, 2048, bf16=True),
    "attention_2048_grad_bf16": lambda: attention(8, 2048, 2048, grad=3, bf16=True),
    "attention_token": lambda: attention(32, 1, 4096, steps=200),
    "llama_token": lambda: Op(llama_token, token, steps=100),
    "matmul_1024": lambda: matmul(1024, 1024, 1024),
    "matmul_2048": lambda: matmul(2048, 2048, 2048, steps=8),
    "matmul_1024_bf16": lambda: matmul(1024, 1024, 1024, bf16=True),
    "matmul_256x3072x768": lambda: matmul(256, 3072, 768),
    "matmul_256x3072x768_nt": lambda: matmul(256, 3072, 768, right="T"),
    "matmul_768x3072x256_tn": lambda: matmul(768, 3072, 256, left="T"),
    "matmul_32x2048x512": lambda: matmul(32, 2048, 512, steps=50),
    "conv_stem": lambda: conv(8, 224, 3, 64, 7, 2),
    "conv_3x3_56": lambda: conv(8, 56, 64, 64, 3),
    "conv_3x3_14": lambda: conv(8, 14, 256, 256, 3),
    "conv_1x1_14": lambda: conv(8, 14, 1024, 256, 1),
    "conv_3x3_56_grad": lambda: conv(8, 56, 64, 64, 3, grad=2),
    "conv_3x3_14_grad": lambda: conv(8, 14, 256, 256, 3, grad=2),
    "conv_1x1_14_grad": lambda: conv(8, 14, 1024, 256, 1, grad=2),
    "conv_depthwise_grad": lambda: conv(16, 28, 192, 192, 3, grad=2, kind="kd"),
    "gather_rows": lambda: Op(lambda F, t, i: F.rows(t, i), lambda i: (i.normal(50257, 768), i.ids(50257, 4096))),
    "embedding_grad": lambda: Op(lambda F, t, i, w: F.rows(t, i) * w, lambda i: (i.normal(50257, 256), i.ids(50257, 4096),
                                                                               i.normal(4096, 256)), grad=1),
    "sort_1m": lambda: Op(lambda F, x: F.sort(x), lambda i: (i.normal(1 << 20),)),
    "cumsum_4096": lambda: Op(lambda F, x: F.cumsum(x), square(4096)),
    "normal_16m": lambda: Op(lambda F, key: F.random_normal(key, 1 << 24), lambda i: (i.ids(9, 2).astype("uint32"),), compare=False),
    "gaussian_process": lambda: Op(nets.gaussian_process, process, grad=3, flops=1024.0 ** 3),
    "n_body_2048": lambda: Op(lambda F, x, v, m: nets.bodies(F, x, v, m * m, 10), lambda i: (i.normal(2048, 3), i.normal(2048, 3), i.normal(2048)),
                              flops=20.0 * 2048 * 2048 * 10),
    "k_means": lambda: Op(lambda F, x, c: nets.k_means(F, x, c, 10), lambda i: (i.normal(50000, 32), i.normal(64, 32)),
                          flops=2.0 * 50000 * 64 * 32 * 10),
    "cart_pole": lambda: Op(lambda F, p, s: nets.cart_poles(F, p, s, 500), lambda i: ([i.dense(4, 64), i.dense(64, 1)], i.normal(64, 4, std=0.05)),
                            bounded=False, steps=100),
    "dispatch": lambda: Op(lambda F, x: x + 1.0, lambda i: (i.normal(8),), steps=2000, bounded=False),
}

WORKLOADS = {**TRAIN, **BF16, **OPS}
