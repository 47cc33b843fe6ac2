"""A job of which one process does what the argument says after three steps; the others print how long they waited, and the error."""
import os
import signal
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

process = int(os.environ["PROCESS"])
odd = process == int(os.environ["PROCESSES"]) - 1
jax.distributed.initialize(os.environ["COORDINATOR"], num_processes=int(os.environ["PROCESSES"]), process_id=process)
mesh = Mesh(np.array(jax.devices()), ("x",))


def made(*shape):
    sharding = NamedSharding(mesh, P("x"))
    return jax.make_array_from_callback(shape, sharding, lambda i: np.ones(shape, np.float32)[i])


@jax.jit
def step(a):
    return jax.shard_map(lambda v: jax.lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(a)


x = made(jax.device_count(), 3)
for _ in range(3):
    step(x).block_until_ready()
if odd and sys.argv[1] == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
if odd and sys.argv[1] == "stops":
    time.sleep(60)
began = time.monotonic()
try:
    step(made(jax.device_count(), 5) if odd else x).block_until_ready()
    print("no error")
except Exception as error:
    print(f"{time.monotonic() - began:.1f} {error}".replace("\n", " "))
sys.stdout.flush()
os._exit(3)
