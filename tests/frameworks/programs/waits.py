"""How many of 20 calls have their result when they return: each after a wait for the one before, and all in a row."""
import json

import jax
import jax.numpy as jnp

f = jax.jit(lambda x: jnp.tanh(x @ x))


def ones(n):
    x = jnp.ones((n, n)) / n
    f(x).block_until_ready()
    return x


x = ones(384)  # half a millisecond, which goes to another thread when nobody waits
waited = 0
for _ in range(20):
    y = f(x)
    waited += y.is_ready()
    y.block_until_ready()
x = ones(1024)
in_a_row = [f(x) for _ in range(20)]
print(json.dumps([waited, sum(y.is_ready() for y in in_a_row)]))
