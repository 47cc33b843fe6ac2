"""weft's plugin beside TensorFlow and PyTorch in one process, imported in every order: each has an LLVM, a oneDNN or a BLAS of its own.

    python tests/install/beside.py          in an environment with jax, weft and any of tensorflow, torch

Every order of those that are there runs in a process of its own, twice round, and must give the first order's numbers. (From a
build: PYTHONPATH=python.)"""
import importlib.util
import itertools
import os
import subprocess
import sys


def with_jax():
    import jax
    import jax.numpy as jnp
    assert jax.devices()[0].platform == "weft"
    x = jnp.arange(4096.0).reshape(64, 64) / 4096
    image, window = jnp.ones((4, 8, 32, 32)), jnp.ones((16, 8, 3, 3))
    loops = jax.jit(jax.grad(lambda w: jnp.tanh(x @ w).sum()))(x).sum()
    conv = jax.jit(lambda a, b: jax.lax.conv(a, b, (1, 1), "SAME"))
    narrow = conv(image.astype(jnp.bfloat16), window.astype(jnp.bfloat16)).astype(jnp.float32).sum()
    return [loops, conv(image, window).sum(), narrow, jnp.linalg.eigh(x @ x.T + jnp.eye(64))[0].sum()]


def with_tensorflow():
    import tensorflow as tf
    x = tf.reshape(tf.range(4096, dtype=tf.float32), (64, 64)) / 4096
    compiled = tf.function(lambda a: tf.nn.relu(tf.tanh(a @ a)), jit_compile=True)  # XLA's LLVM
    image, window = tf.ones((4, 32, 32, 8)), tf.ones((3, 3, 8, 16))
    return [tf.reduce_sum(compiled(x)), tf.reduce_sum(tf.nn.conv2d(image, window, 1, "SAME")), tf.reduce_sum(tf.linalg.eigvalsh(x @ tf.transpose(x)))]


def with_torch():
    import torch
    x = torch.arange(4096.0).reshape(64, 64) / 4096
    image, window = torch.ones(4, 8, 32, 32), torch.ones(16, 8, 3, 3)
    narrow = torch.nn.functional.conv2d(image.bfloat16(), window.bfloat16(), padding=1).float().sum()
    return [torch.tanh(x @ x).sum(), torch.nn.functional.conv2d(image, window, padding=1).sum(), narrow, torch.linalg.eigvalsh(x @ x.T).sum()]


WAYS = {"jax": with_jax, "tensorflow": with_tensorflow, "torch": with_torch}


def run(order):
    for _ in range(2):
        for name in order:
            print(name, *(f"{float(v):.5g}" for v in WAYS[name]()), flush=True)


def main():
    here = [name for name in WAYS if importlib.util.find_spec(name)]
    env = dict(os.environ, JAX_PLATFORMS="weft", TF_CPP_MIN_LOG_LEVEL="3")
    seen, failed = {}, 0
    for n in range(1, len(here) + 1):
        for order in itertools.permutations(here, n):
            r = subprocess.run([sys.executable, __file__, *order], env=env, capture_output=True, text=True, timeout=600)
            lines = [line for line in r.stdout.splitlines() if line.split()[:1] and line.split()[0] in WAYS]
            wrong = r.returncode or len(lines) != 2 * n or any(seen.setdefault(line.split()[0], line) != line for line in lines)
            failed += bool(wrong)
            print(f"{' then '.join(order)}: {'FAILED ' + str(r.returncode) + chr(10) + r.stdout + r.stderr[-2000:] if wrong else 'good'}", flush=True)
    print(*seen.values(), sep="\n")
    print(f"{len(here)} frameworks, {failed} orders failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]) if sys.argv[1:] else main())
