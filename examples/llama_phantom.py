"""A Llama-7B-like training step in plain JAX: does it fit a chip, and how long would a step take?

    WEFT_PHANTOM=1 WEFT_DEVICE=tpu-v5p JAX_PLATFORMS=weft python examples/llama_phantom.py
    WEFT_PHANTOM=1 WEFT_DEVICE=tpu-v5e-16 JAX_PLATFORMS=weft python examples/llama_phantom.py --shard fsdp --batch 16

Nothing here knows weft. With WEFT_PHANTOM=1 the numbers are off and memory and time are on: arrays have shapes but no data, so that a
laptop compiles and "runs" the step of a chip. A step that does not fit is refused with what holds the memory."""
import argparse
import time
from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

a = argparse.ArgumentParser()
a.add_argument("--layers", type=int, default=32)
a.add_argument("--width", type=int, default=4096)
a.add_argument("--hidden", type=int, default=11008)
a.add_argument("--heads", type=int, default=32)
a.add_argument("--vocab", type=int, default=32000)
a.add_argument("--batch", type=int, default=1, help="sequences in a step, over all devices")
a.add_argument("--length", type=int, default=2048)
a.add_argument("--shard", choices=["data", "fsdp"], default="data", help="of the state: copied, or cut over the devices")
a.add_argument("--unroll", action="store_true", help="layers one after another instead of lax.scan")
a.add_argument("--no-remat", action="store_true", help="keep all activations for the backward pass")
a = a.parse_args()

mesh = Mesh(jax.devices(), ("d",))
n = len(jax.devices())


def shapes():
    d, h, layers = a.width, a.hidden, a.layers
    layer = {"q": (layers, d, d), "k": (layers, d, d), "v": (layers, d, d), "o": (layers, d, d), "gate": (layers, d, h),
             "up": (layers, d, h), "down": (layers, h, d), "norm1": (layers, d), "norm2": (layers, d)}
    return {"embed": (a.vocab, d), "layers": layer, "norm": (d,), "head": (d, a.vocab)}


def sharding(shape):
    """FSDP cuts the largest dimension that divides; data parallel copies."""
    cut = [i for i in range(len(shape)) if shape[i] % n == 0 and shape[i] >= 1024]
    if a.shard == "data" or not cut:
        return NamedSharding(mesh, P())
    i = max(cut, key=lambda i: shape[i])
    return NamedSharding(mesh, P(*[None] * i, "d"))


def norm(x, w):
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True) + 1e-5).astype(x.dtype) * w


def rotary(x):
    t, half = x.shape[1], x.shape[-1] // 2
    angle = jnp.arange(t)[:, None] / 10000 ** (jnp.arange(half) / half)
    c, s = (f(angle)[None, :, None].astype(x.dtype) for f in (jnp.cos, jnp.sin))
    x1, x2 = x[..., :half], x[..., half:]
    return jnp.concatenate([x1 * c - x2 * s, x2 * c + x1 * s], -1)


def cut(x):
    """Each device keeps its examples. Without this the partitioner gathers activations, too, where weights lie cut along the same dimension."""
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("d")))


def block(x, w):
    b, t, d = x.shape
    y = norm(x, w["norm1"])
    q, k, v = ((y @ w[s]).reshape(b, t, a.heads, -1) for s in "qkv")
    score = jnp.einsum("bthd,bshd->bhts", rotary(q), rotary(k)).astype(jnp.float32) / (d // a.heads) ** 0.5
    score = jnp.where(jnp.tril(jnp.ones((t, t), bool)), score, -1e30)
    y = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(score).astype(x.dtype), v).reshape(b, t, d)
    x = x + y @ w["o"]
    y = norm(x, w["norm2"])
    return x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]


def loss_of(params, tokens):
    p = jax.tree.map(lambda w: w.astype(jnp.bfloat16), params)
    x = cut(p["embed"][tokens[:, :-1]])
    step = block if a.no_remat else jax.checkpoint(block)
    if a.unroll:
        for i in range(a.layers):
            x = cut(step(x, jax.tree.map(lambda w: w[i], p["layers"])))
    else:
        x, _ = jax.lax.scan(lambda x, w: (cut(step(x, w)), None), x, p["layers"])
    logits = (norm(x, p["norm"]) @ p["head"]).astype(jnp.float32)
    picked = jnp.take_along_axis(logits, tokens[:, 1:, None], -1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - picked)


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt, tokens):
    loss, grads = jax.value_and_grad(loss_of)(params, tokens)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, opt["m"], grads)
    v = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, opt["v"], grads)
    params = jax.tree.map(lambda w, m, v: w - 3e-4 * m / (jnp.sqrt(v) + 1e-8), params, m, v)
    return params, {"m": m, "v": v}, loss


spec = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s, jnp.float32, sharding=sharding(s)), shapes(), is_leaf=lambda x: isinstance(x, tuple))
tokens = jax.ShapeDtypeStruct((a.batch, a.length + 1), jnp.int32, sharding=NamedSharding(mesh, P("d")))
count = sum(x.size for x in jax.tree.leaves(spec))
print(f"{count / 1e9:.2f} G parameters on {n} x {jax.devices()[0].device_kind}, {a.batch} x {a.length} tokens, {a.shard}")
start = time.time()
try:
    compiled = train_step.lower(spec, {"m": spec, "v": spec}, tokens).compile()
except Exception as e:
    raise SystemExit(f"{e}\n(answered in {time.time() - start:.1f} s)")
memory, cost = compiled.memory_analysis(), compiled.cost_analysis()
held = memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes + memory.temp_size_in_bytes
step = cost["optimal_seconds"]
print(f"fits: {held / 2**30:.2f} GiB a device, of it {memory.argument_size_in_bytes / 2**30:.2f} GiB arguments")
print(f"step: {step:.3f} s, {a.batch * a.length / step / n:.0f} tokens/s a device")

zeros = jax.jit(lambda: jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), (spec, {"m": spec, "v": spec})),
                out_shardings=jax.tree.map(lambda s: s.sharding, (spec, {"m": spec, "v": spec})))
params, opt = zeros()
batch = jax.jit(lambda: jnp.zeros(tokens.shape, tokens.dtype), out_shardings=tokens.sharding)()
for _ in range(3):
    params, opt, loss = train_step(params, opt, batch)
jax.block_until_ready(params)
print(f"three steps ran, peak {jax.devices()[0].memory_stats()['peak_bytes_in_use'] / 2**30:.2f} GiB (answered in {time.time() - start:.1f} s)")
