"""A step of fully sharded training on eight devices: what its program takes on one of them and in this process. Prints one JSON line."""
import json
import os
import resource

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

LAYERS, WIDE, BATCH = 6, 512, 1024
mesh = Mesh(np.array(jax.devices()), ("x",))
cut = NamedSharding(mesh, P("x"))
w = jax.jit(lambda: [jax.random.normal(jax.random.key(i), (WIDE, WIDE)) * 0.03 for i in range(LAYERS)], out_shardings=cut)()
x = jax.jit(lambda: jnp.ones((BATCH, WIDE)), out_shardings=cut)()


def loss(w, x):
    for a in w:
        x = jax.nn.gelu(x @ a)
    return (x ** 2).mean()


def step(w, x):
    value, g = jax.value_and_grad(loss)(w, x)
    return [jax.lax.with_sharding_constraint(a - 0.1 * b, cut) for a, b in zip(w, g)], value


program = jax.jit(step, donate_argnums=0).lower(w, x).compile()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(2):
    w, value = program(w, x)
jax.block_until_ready(w)
m, s = program.memory_analysis(), jax.devices()[3].memory_stats()
print(json.dumps({"args": m.argument_size_in_bytes, "temp": m.temp_size_in_bytes, "peak": s["peak_bytes_in_use"], "in use": s["bytes_in_use"],
                  "process": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10, "value": float(value)}))
