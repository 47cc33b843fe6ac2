"""Memory as JAX shows it: counted, given back, limited; prints one line of JSON."""
import gc
import json
import os

import jax
import jax.numpy as jnp
import numpy as np

d = jax.devices()[0]
out = {"limit": d.memory_stats().get("bytes_limit"), "steps": []}


def note(what):
    gc.collect()
    s = d.memory_stats()
    out["steps"].append([what, s["bytes_in_use"], s["peak_bytes_in_use"], len(jax.live_arrays())])


note("start")
x = jax.device_put(np.ones((1024, 1024), np.float32))
note("one array")
f = jax.jit(lambda x: (x @ x) @ jnp.tanh(x @ x.T))
c = f.lower(x).compile()
m, k = c.memory_analysis(), c.cost_analysis()
out["analysis"] = [m.argument_size_in_bytes, m.output_size_in_bytes, m.alias_size_in_bytes, m.temp_size_in_bytes]
out["flops"] = k["flops"]
y = f(x)
y.block_until_ready()
note("ran")
g = jax.jit(lambda x: x * 2, donate_argnums=0)
out["donated alias"] = g.lower(x).compile().memory_analysis().alias_size_in_bytes
x = g(x)
x.block_until_ready()
note("donated")
y.delete()
note("deleted")
del x
note("all gone")
h = jax.jit(lambda x: jnp.tanh(x @ x) @ (x @ x) + x, donate_argnums=0)
x = jax.device_put(np.ones((2048, 2048), np.float32))
out["donated temp"] = h.lower(x).compile().memory_analysis().temp_size_in_bytes
x = h(x)
x.block_until_ready()
note("donated, with temporaries")
del x
errors = []
if os.environ["WEFT_DEVICE"] != "cpu":  # whose limit is the host's memory
    rows = out["limit"] // 4096  # of 4 KiB
    keep = [jnp.zeros((rows * 6 // 10, 1024), jnp.float32)]

    def refused(make):
        try:
            make().block_until_ready()
        except Exception as e:
            return str(e)
        return ""

    errors.append(refused(lambda: jnp.ones((rows * 6 // 10, 1024), jnp.float32)))
    keep.append(jnp.zeros((rows - rows * 6 // 10 - 512, 1024), jnp.float32))  # 2 MiB are left
    errors.append(refused(lambda: jax.device_put(np.ones((1024, 1024), np.float32))))
    del keep
    note("after the wall")
out["errors"] = errors
print(json.dumps(out))
