"""Running sums, products and sums of logarithms, as JSON: largest errors against longer arithmetic, as a share of the number and as
one of the largest number; and what becomes of infinities and NaN."""
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)

RUNS = {"sum": (lax.cumsum, np.cumsum), "product": (lax.cumprod, np.cumprod), "logs": (lax.cumlogsumexp, np.logaddexp.accumulate)}
SHAPES = [((20000, 8), 0, False), ((2000, 130), 0, True), ((9, 20000), 1, False), ((100001,), 0, True), ((40, 20, 7), 1, False)]
rng = np.random.default_rng(0)
errors, special = {}, {}
for name, (run, exact) in RUNS.items():
    for dtype in ("float32", "float64", "bfloat16", "float16"):
        for shape, axis, reverse in SHAPES[:2] if "16" in dtype else SHAPES:
            x = rng.uniform(0, 1e-3 if dtype == "float16" and name == "sum" else 1, shape)
            x = jnp.asarray(1 + (x - 0.5) * 2e-3 if name == "product" else x).astype(dtype)
            got = np.asarray(jax.jit(run, static_argnames=("axis", "reverse"))(x, axis=axis, reverse=reverse).astype(jnp.float64))
            wide = np.asarray(x.astype(jnp.float64)).astype(np.longdouble)
            want = np.flip(exact(np.flip(wide, axis), axis), axis) if reverse else exact(wide, axis)
            off = np.abs(got - want)
            errors[f"{name} {dtype} {shape} {axis} {reverse}"] = [float((off / np.abs(want)).max()), float(off.max() / np.abs(want).max())]
    for dtype in ("float32", "float64"):
        for k, odd in enumerate(((np.inf,), (-np.inf,), (np.nan,), (np.inf, -np.inf), (-np.inf, 0.0, -np.inf))):
            for shape in ((300,), (3, 300)):
                x = np.ones(shape, dtype)
                for i, v in enumerate(odd):
                    x[(0, 100 + 40 * i) if shape[0] == 3 else 100 + 40 * i] = v
                with np.errstate(all="ignore"):
                    y = np.asarray(run(jnp.asarray(x), axis=int(shape[0] == 3)))
                special[f"{name} {dtype} {k} {shape}"] = [np.isnan(y).astype(int).ravel().tolist(), np.isposinf(y).astype(int).ravel().tolist()]
print(json.dumps({"errors": errors, "special": special}))
