"""A train step over all chips of a virtual slice, from one process or from one for each host: what each sees of it."""
import json
import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

if int(os.environ["PROCESSES"]) > 1:
    jax.distributed.initialize(os.environ["COORDINATOR"], int(os.environ["PROCESSES"]), int(os.environ["PROCESS"]))
mesh = Mesh(np.array(jax.devices()).reshape(-1, 4), ("data", "model"))


def zeros(shape, *spec):
    return jax.jit(lambda: jnp.zeros(shape, jnp.bfloat16), out_shardings=NamedSharding(mesh, P(*spec)))()


@jax.jit
def step(w1, w2, x):
    return jax.grad(lambda a, b: jnp.sum((jax.nn.gelu(x @ a) @ b).astype(jnp.float32)), (0, 1))(w1, w2)


args = zeros((4096, 8192), "data", "model"), zeros((8192, 4096), "model", "data"), zeros((8192, 4096), "data")
compiled = step.lower(*args).compile()
gradient = jax.block_until_ready(step(*args))[0]
memory = compiled.memory_analysis()
print(json.dumps({
    "all": [[d.id, *d.coords] for d in jax.devices()],
    "own": [[d.id, d.process_index] for d in jax.local_devices()],
    "cost": [memory.argument_size_in_bytes, memory.temp_size_in_bytes, compiled.cost_analysis()["optimal_seconds"]],
    "shards": [[list(s.data.shape), s.device.id] for s in gradient.addressable_shards]}))
