"""Attention whose scores are more than caches hold: temporaries in bytes, and results at some places; one line of JSON."""
import json

import jax
import jax.numpy as jnp
import numpy as np

T, S, H, D = 2903, 3001, 2, 32


def plain(q, k, v, seen):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / D**0.5
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)


def padded(q, k, v, seen):
    return jax.nn.dot_product_attention(q, k, v, mask=seen[None, None, None, :])


def biased(q, k, v, seen):
    far = jnp.arange(T)[:, None] - jnp.arange(S)[None]
    return jax.nn.dot_product_attention(q, k, v, bias=(-0.01 * abs(far))[None, None].astype(q.dtype))


def shared(q, k, v, seen):
    return jax.nn.dot_product_attention(q, k[:, :, :1], v[:, :, :1])


r = np.random.default_rng(0)
q, k, v = (r.standard_normal((1, n, H, D)) for n in (T, S, S))
seen = np.arange(S) < 2000
out = {}
for f in (plain, padded, biased, shared):
    for dtype in ("float32", "bfloat16"):
        x = [jnp.asarray(a, dtype) for a in (q, k, v)]
        c = jax.jit(f).lower(*x, seen).compile()
        y = np.asarray(c(*x, seen), np.float32)
        out[f"{f.__name__} {dtype}"] = [c.memory_analysis().temp_size_in_bytes, y[0, ::97, :, ::7].ravel().tolist()]
print(json.dumps(out))
