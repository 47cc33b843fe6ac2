"""A train step of Flax and Optax as a file, for `weft train`:

    python examples/train_step.py runs/step
    weft train runs/step/step.mlirbc --init runs/step/init.npz --data fashion-mnist --steps 400 --out runs/mine
"""
import pathlib
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState
from jax import export

BATCH = 128


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(16, (3, 3), strides=2)(x))
        x = nn.relu(nn.Conv(32, (3, 3), strides=2)(x))
        return nn.Dense(10)(x.reshape(x.shape[0], -1))


def step(state, x, y):
    def loss_of(params):
        logits = state.apply_fn({"params": params}, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), logits
    (loss, logits), grads = jax.value_and_grad(loss_of, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads), {"loss": loss, "accuracy": (logits.argmax(-1) == y).mean(), "gradient_norm": optax.tree.norm(grads)}


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    x, y = jnp.zeros((BATCH, 28, 28, 1)), jnp.zeros(BATCH, jnp.int32)
    net = Net()
    state = TrainState.create(apply_fn=net.apply, params=net.init(jax.random.key(0), x)["params"], tx=optax.adam(1e-3))
    exported = export.export(jax.jit(step, donate_argnums=0), platforms=["cpu"])(state, x, y)
    (folder / "step.mlirbc").write_bytes(exported.mlir_module_serialized)
    np.savez(folder / "init.npz", *jax.tree.leaves(state))  # in the order of the step's arguments


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "runs/step"))
