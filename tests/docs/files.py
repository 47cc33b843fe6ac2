"""The files that the pages speak of, small: data sets, pictures, texts, programs and scripts."""
import atexit
import gzip
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
READY = pathlib.Path(tempfile.gettempdir()) / f"weft-pages-{os.getpid()}"

STEP = '''
import jax, jax.numpy as jnp, numpy as np
from jax import export

def init(key):
    return {"w": jax.random.normal(key, (784, 16)) / 28, "v": jnp.zeros((16, 10))}

def loss_of(params, x, y):
    logits = jax.nn.relu(x @ params["w"]) @ params["v"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1).mean()

def step(params, x, y):
    loss, g = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, q: p - 0.1 * q, params, g), {"loss": loss}

x, y = jnp.zeros((32, 784)), jnp.zeros(32, jnp.int32)
shapes = init(jax.random.key(0)), x, y
lowered = jax.jit(step, donate_argnums=0).lower(*shapes)
open("step.mlir", "w").write(lowered.as_text())
open("step.mlirbc", "wb").write(export.export(jax.jit(step, donate_argnums=0), platforms=["cpu"])(*shapes).mlir_module_serialized)
open("init.mlir", "w").write(jax.jit(lambda s: init(jax.random.key(s))).lower(np.int32(0)).as_text())
'''

TRAIN = '''
import jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(jax.devices(), "x")
x = jax.device_put(jnp.ones((16, 64)), NamedSharding(mesh, P("x")))
print(jax.jit(jax.grad(lambda w, x: jnp.tanh(x @ w).sum()))(jnp.ones((64, 8)), x).sum())
'''


def png(picture):
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + row.tobytes() for row in picture)
    head = struct.pack(">IIBBBBB", picture.shape[1], picture.shape[0], 8, 0 if picture.ndim == 2 else 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def idx(path, array):
    path.write_bytes(gzip.compress(struct.pack(f">I{array.ndim}I", 0x800 + array.ndim, *array.shape) + array.tobytes()))


def data_sets(folder):
    g = np.random.default_rng(1)
    for name in ("mnist", "fashion-mnist"):
        (folder / name).mkdir(parents=True)
        for part, n in (("train", 512), ("t10k", 64)):
            idx(folder / name / f"{part}-images-idx3-ubyte.gz", g.integers(0, 256, (n, 28, 28), np.uint8))
            idx(folder / name / f"{part}-labels-idx1-ubyte.gz", g.integers(0, 10, n).astype(np.uint8))
    (folder / "cifar10").mkdir()
    for name in (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"):
        with open(folder / "cifar10" / f"{name}.bin", "wb") as f:
            f.truncate(30730000)  # all black, and nothing on the disk


def fill(folder, env):
    g = np.random.default_rng(2)
    folder.mkdir()
    for name in ("shoe.png", "cat.png"):
        (folder / name).write_bytes(png(g.integers(0, 256, (28, 28), np.uint8)))
    for kind in ("cat", "dog"):
        for where in (f"pictures/{kind}", f"others/train/{kind}", f"others/test/{kind}"):
            (folder / where).mkdir(parents=True)
            for k in range(24):
                (folder / where / f"{k}.png").write_bytes(png(g.integers(0, 256, (28, 28), np.uint8)))
    (folder / "corpus.txt").write_text("To be, or not to be, that is the question. " * 300)
    (folder / "corpus").mkdir()
    (folder / "corpus" / "a.txt").write_text("To be, or not to be. " * 100)
    (folder / "examples").symlink_to(ROOT / "examples")
    np.savez(folder / "in.npz", in0=np.zeros((16, 10), "f"), in1=np.zeros((784, 16), "f"), in2=np.zeros((32, 784), "f"), in3=np.zeros(32, "i"))
    np.savez(folder / "pictures.npz", x=g.integers(0, 256, (256, 28, 28, 3), np.uint8), y=g.integers(0, 10, 256))
    np.savez(folder / "train.npz", x=g.standard_normal((256, 784), np.float32), y=g.integers(0, 10, 256).astype(np.int32))
    for name in ("train.py", "sharded.py"):
        (folder / name).write_text(TRAIN)
    subprocess.run([sys.executable, "-c", STEP], cwd=folder, env=dict(env, JAX_PLATFORMS="cpu"), check=True)


def make(folder, env):
    """Into the folder; they are made once in a process. Gives where the data sets are."""
    if not READY.exists():
        READY.mkdir()
        atexit.register(shutil.rmtree, READY, True)
        fill(READY / "files", env)
        data_sets(READY / "datasets")
    shutil.copytree(READY / "files", folder, dirs_exist_ok=True, symlinks=True)
    return READY / "datasets"
