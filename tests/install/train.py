"""A train step in JAX on weft, in whatever environment runs this: train.py. Products, convolutions, loops and LAPACK; the loss must
fall, and be what JAX's own CPU backend says where there is one (JAX_PLATFORMS=weft,cpu)."""
import jax
import jax.numpy as jnp
import numpy as np


def init(key):
    a, b, c = jax.random.split(key, 3)
    return {"conv": 0.1 * jax.random.normal(a, (3, 3, 1, 8)), "dense": 0.05 * jax.random.normal(b, (14 * 14 * 8, 32)),
            "out": 0.1 * jax.random.normal(c, (32, 10))}


def loss(p, x, y):
    h = jax.lax.conv_general_dilated(x, p["conv"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    h = jax.nn.gelu(h).reshape(x.shape[0], -1)
    z = jax.nn.log_softmax(jnp.tanh(h @ p["dense"]) @ p["out"])
    return -jnp.take_along_axis(z, y[:, None], 1).mean()


@jax.jit
def step(p, x, y):
    v, g = jax.value_and_grad(loss)(p, x, y)
    return v, jax.tree.map(lambda w, d: w - 0.5 * d, p, g)


def losses(device):
    with jax.default_device(device):
        rng = np.random.default_rng(0)
        x, y = jnp.asarray(rng.normal(size=(64, 28, 28, 1)).astype("f")), jnp.asarray(rng.integers(0, 10, 64))
        p, seen = init(jax.random.key(0)), []
        for _ in range(10):
            v, p = step(p, x, y)
            seen.append(float(v))
    return np.array(seen)


def main():
    device = jax.devices()[0]
    assert device.platform == "weft", device
    mine = losses(device)
    assert np.isfinite(mine).all() and mine[-1] < 0.9 * mine[0], mine
    try:
        cpu = jax.devices("cpu")[0]
    except RuntimeError:
        cpu = device
    if cpu.platform == "cpu":
        np.testing.assert_allclose(mine, losses(cpu), rtol=1e-4)
    m = np.random.default_rng(1).normal(size=(24, 24)).astype("f")
    m = m @ m.T
    w, v = map(np.asarray, jnp.linalg.eigh(m))  # the products by numpy: a TPU's are of bf16
    np.testing.assert_allclose(v * w @ v.T, m, atol=1e-3)
    print(f"jax {jax.__version__} on {device.platform}: loss {mine[0]:.4f} to {mine[-1]:.4f} in 10 steps")


main()
