"""Linear algebra of matrices with one NaN, as JSON: which numbers of each result are not finite, as text."""
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import linalg

jax.config.update("jax_enable_x64", True)


def near_one(a):
    return a * 0.01 + 5 * jnp.eye(a.shape[-1], dtype=a.dtype)


def ones(a):
    return jnp.ones((*a.shape[:-1], 3), a.dtype)


FUNCTIONS = {
    "solve": lambda a: jnp.linalg.solve(a, ones(a)),
    "q": lambda a: jnp.linalg.qr(a)[0],
    "r": lambda a: jnp.linalg.qr(a)[1],
    "cholesky": lambda a: jax.lax.linalg.cholesky(near_one(a), symmetrize_input=False),
    "lower": lambda a: linalg.solve_triangular(near_one(a), ones(a), lower=True),
    "upper": lambda a: linalg.solve_triangular(near_one(a), ones(a), lower=False),
    "right side": lambda a: jnp.linalg.solve(jnp.where(jnp.isnan(a), 0, near_one(a)), jnp.where(jnp.isnan(a), a, 1)),
    "eigenvalues": lambda a: jnp.linalg.eigh(a)[0],
    "eigenvectors": lambda a: jnp.linalg.eigh(a)[1],
    "singular values": lambda a: jnp.linalg.svd(a)[1],
}


def main():
    out = {}
    for name, f in FUNCTIONS.items():
        f = jax.jit(f)
        for batch, n, dtype in [((), 6, np.complex64), ((5,), 6, np.float64), ((), 40, np.float32)]:
            for i, j in [(0, 0), (n // 2, n // 3), (n - 1, n - 1), (0, n - 1)]:
                a = np.random.RandomState(0).randn(*batch, n, n).astype(dtype)
                a[(1,) * len(batch) + (i, j)] = np.nan
                bad = ~np.isfinite(np.asarray(f(a))).reshape(-1)
                out[f"{name} {batch} {n} {i},{j}"] = "".join("x" if b else "." for b in bad)
    print(json.dumps(out))


main()
