"""Temporaries of the gradients of networks whose twelve layers are scanned, in bytes, and the largest gradients; one line of JSON."""
import json

import jax
import jax.numpy as jnp
from jax import lax

B, D, H, L = 128, 128, 256, 12


def norm(x):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(x, w):
    q, k, v, o, a, b = w
    h = norm(x)
    heads = lambda m: (h @ m).reshape(4, -1, 4, D // 4).transpose(0, 2, 1, 3)
    p = jax.nn.softmax(heads(q) @ heads(k).swapaxes(2, 3) / 8, -1)
    x = x + (p @ heads(v)).transpose(0, 2, 1, 3).reshape(x.shape) @ o
    return x + jax.nn.gelu(x @ a) @ b


LAYERS = {
    "tanh": (lambda x, w: jnp.tanh(x @ w), [(D, D)]),
    "relu": (lambda x, w: jax.nn.relu(x @ w), [(D, D)]),
    "mlp": (lambda x, w: x + jnp.tanh(x @ w[0]) @ w[1], [(D, H), (H, D)]),
    "mlp, again": (jax.checkpoint(lambda x, w: x + jnp.tanh(x @ w[0]) @ w[1]), [(D, H), (H, D)]),
    "norm": (lambda x, w: x + jax.nn.gelu(norm(x) @ w[0]) @ w[1], [(D, H), (H, D)]),
    "attention": (attention, [(D, D)] * 4 + [(D, H), (H, D)]),
}
out = {}
for name, (layer, shapes) in LAYERS.items():
    keys = jax.random.split(jax.random.key(0), len(shapes) + 1)
    ws = [jax.random.normal(k, (L, *s)) / s[0] ** 0.5 for k, s in zip(keys, shapes)]
    ws = ws if len(ws) > 1 else ws[0]
    loss = lambda ws, x: (lax.scan(lambda x, w: (layer(x, w), None), x, ws)[0] ** 2).mean()
    f = jax.jit(jax.grad(loss)).lower(ws, jax.random.normal(keys[-1], (B, D))).compile()
    grads = f(ws, jax.random.normal(keys[-1], (B, D)))
    out[name] = [f.memory_analysis().temp_size_in_bytes, [float(jnp.abs(g).max()) for g in jax.tree.leaves(grads)]]
print(json.dumps(out))
