"""Values of 16 bits that are stored and read again in the same program, as JSON: what p + y lost, in the ways that programs write it.

Argument: "stored", whose programs store p + y; "each", whose do not and are compiled to round each operation.
"""
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np


def lost(n, p, y):
    return y - (n - p)


def kahan(p, y):
    """A thousand steps too small to change p, compensated."""
    def step(_, carry):
        p, c = carry
        d = y - c
        t = p + d
        return t, (t - p) - d
    return jax.lax.fori_loop(0, 1000, step, (p, jnp.zeros_like(p)))


def with_sum(p, y, name):
    n = p + y
    kept = {
        "itself": n, "shape": n.reshape(2, -1), "turned": n.reshape(2, -1).T, "part": n[1:], "backwards": n[::-1],
        "joined": jnp.concatenate([n, p]), "padded": jnp.pad(n, 1), "spread": jnp.broadcast_to(n, (3, n.size)),
        "picked": jnp.where(y > 0, n, p), "negative": -n, "most": n.max(), "bounded": jnp.clip(n, 0, 2), "product": n @ p,
        "other": n * 2, "sorted": jnp.sort(n),
    }[name]
    return kept, lost(n, p, y)


STORED = ["itself", "shape", "turned", "part", "backwards", "joined", "padded", "spread", "picked", "negative", "most", "bounded", "product", "sorted"]


def chain(x, y):
    for _ in range(3):
        x = x * y + x
        x = x - y * y
        x = x / (y + 1) + jnp.maximum(x, y)
    return x


def numbers(tree):
    return [np.asarray(x.astype(jnp.float32)).ravel()[:8].tolist() for x in jax.tree.leaves(tree)]


out = {}
for dtype, small in ((jnp.bfloat16, 1e-3), (jnp.float16, 1e-4)):
    for n in (8, 20000):  # on strips, and by generated code
        where = f"{np.dtype(dtype).name} {n}"
        p, y = jnp.ones(n, dtype), jnp.full(n, small, dtype)
        if sys.argv[1] == "stored":
            for name in STORED:
                out[f"{where} {name}"] = numbers(jax.jit(with_sum, static_argnums=2)(p, y, name)[1])
            out[f"{where} kahan"] = numbers(jax.jit(kahan)(p, y))
            # a value that is stored here and computed again elsewhere
            out[f"{where} twice"] = numbers(jax.jit(lambda p, y: (p + y, jnp.sum(lost(p + y, p, y).reshape(4, -1), 1)))(p, y)[1])
        else:
            each = {"compiler_options": {"xla_allow_excess_precision": False}} if len(sys.argv) < 3 else {}
            x, z = (jax.random.uniform(jax.random.key(i), (n,), dtype, 0.5, 1.5) for i in range(2))
            out[f"{where} lost"] = numbers(jax.jit(lambda p, y: lost(p + y, p, y), **each)(p, y))
            out[f"{where} chain"] = numbers(jax.jit(chain, **each)(x, z))
            with jax.disable_jit():
                out[f"{where} by op"] = numbers(chain(x, z))
print(json.dumps(out))
