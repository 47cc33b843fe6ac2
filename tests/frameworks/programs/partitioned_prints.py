"""Calls of each device with its parts, in a program that is partitioned; prints the lines in order as JSON."""
import contextlib
import io
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
a = jax.device_put(np.arange(16.0, dtype=np.float32).reshape(4, 4), NamedSharding(mesh, P("x", "y")))


@jax.jit
def f(a):
    jax.debug.print("a {} {}", a, jnp.sin(a).sum(0) * 0, partitioned=True)
    jax.debug.callback(lambda row: print("rows", row.tolist()), a * 2, partitioned=True)
    return a + 1


said = io.StringIO()
with contextlib.redirect_stdout(said), jax.set_mesh(mesh):
    f(a)
    jax.effects_barrier()
one = io.StringIO()
with contextlib.redirect_stdout(one):
    jax.jit(lambda x: jax.debug.print("one {}", x, partitioned=True))(np.arange(3))
    jax.effects_barrier()
words = sorted(" ".join(piece.split()) for piece in said.getvalue().replace("a [[", "\0a [[").replace("rows", "\0rows").split("\0"))
print(json.dumps({"parts": words, "one": one.getvalue()}))
