"""weft train PROGRAM: train steps exported from JAX (alone, with Flax and Optax), driven by weft's loop and by JAX's own; the same
state after the same steps, whatever names, donation or order say of who is state."""
import json
import os
import re
import subprocess
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import safetensors.numpy
from flax.training import train_state
from jax import export
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from conftest import weft

BATCH, STEPS = 16, 12
RNG = np.random.default_rng(0)
X = RNG.normal(size=(BATCH * STEPS, 6)).astype(np.float32)
Y = RNG.integers(0, 3, BATCH * STEPS).astype(np.int32)


def xent(z, y):
    return jnp.mean(jax.nn.logsumexp(z, -1) - jnp.take_along_axis(z, y[:, None], -1)[:, 0])


def plain():
    """Momentum by hand, a random key in the state."""
    def step(params, slots, key, x, y):
        key, sub = jax.random.split(key)

        def loss(p):
            h = jnp.tanh(x @ p["in"]["w"] + p["in"]["b"]) * jax.random.bernoulli(sub, 0.9, (x.shape[0], 8))
            return xent(h @ p["out"]["w"], y)
        value, g = jax.value_and_grad(loss)(params)
        slots = jax.tree.map(lambda m, d: 0.9 * m + d, slots, g)
        return jax.tree.map(lambda p, m: p - 0.1 * m, params, slots), slots, key, {"loss": value, "norm": optax.tree.norm(g)}
    k = jax.random.PRNGKey(7)
    params = {"in": {"w": jax.random.normal(k, (6, 8)), "b": jnp.zeros(8)}, "out": {"w": jax.random.normal(k, (8, 3))}}
    return step, (params, jax.tree.map(jnp.zeros_like, params), jax.random.PRNGKey(3)), (0, 1)


def flax_optax():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(3)(nn.LayerNorm()(nn.relu(nn.Dense(8)(x))))
    net = Net()
    state = train_state.TrainState.create(apply_fn=net.apply, params=net.init(jax.random.PRNGKey(1), X[:1])["params"],
                                          tx=optax.adamw(optax.cosine_decay_schedule(1e-2, 50)))

    def step(state, batch):
        value, g = jax.value_and_grad(lambda p: xent(state.apply_fn({"params": p}, batch["x"]), batch["y"]))(state.params)
        return state.apply_gradients(grads=g), {"loss": value, "accuracy": value * 0 + 0.5}
    return step, (state,), (0,)


def batch_of(step, i):
    b = {"x": jnp.asarray(X[i * BATCH:(i + 1) * BATCH]), "y": jnp.asarray(Y[i * BATCH:(i + 1) * BATCH])}
    return (b,) if step is flax_optax else (b["x"], b["y"])


def jax_loop(which):
    """Losses and the leaves of the last state, by JAX."""
    step, state, _ = which()
    jitted, losses, n = jax.jit(step), [], len(state)
    for i in range(STEPS):
        out = jitted(*state, *batch_of(which, i))
        state, metrics = out[:n], out[n]
        losses.append(float(metrics["loss"]))
    return losses, [np.asarray(v) for v in jax.tree.leaves(state)]


def lower(which, donate=True):
    step, state, donated = which()
    return jax.jit(step, donate_argnums=donated if donate else ()), (*state, *batch_of(which, 0)), state


def write(kind, which, path):
    f, args, _ = lower(which, kind != "nothing")
    lowered = f.lower(*args)
    if kind == "bytecode":
        return path.with_suffix(".mlirbc").write_bytes(export.export(f)(*args).mlir_module_serialized), path.with_suffix(".mlirbc")
    if kind == "hlo":
        return path.with_suffix(".hlo.pb").write_bytes(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()), path.with_suffix(".hlo.pb")
    text = lowered.as_text(debug_info=kind == "names")
    if kind == "nothing":  # neither names nor donation: types and order alone
        text = re.sub(r' \{jax.result_info = "[^"]*"\}', "", text)
    return path.with_suffix(".mlir").write_text(text), path.with_suffix(".mlir")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "d.npz"
    np.savez(path, x=X, y=Y.astype(np.int64))
    return path


def losses_of(run):
    events = EventAccumulator(str(run)).Reload()
    return [e.value for e in events.Scalars("train/loss")]


def state_of(run):
    raw = (run / "checkpoint.safetensors").read_bytes()
    names = [k for k in json.loads(raw[8:8 + int.from_bytes(raw[:8], "little")]) if k != "__metadata__"]
    tensors = safetensors.numpy.load(raw)
    return [tensors[n] for n in names]


def train(program, data, run, *flags, steps=STEPS):
    r = weft("train", program, "--data", f"npz:{data}", "--in-order", "--steps", steps, "--no-compare", "--out", run, *flags)
    assert r.returncode == 0, r.stderr
    return r


@pytest.mark.parametrize("kind", ["names", "bytecode", "text", "nothing", "hlo"])
@pytest.mark.parametrize("which", [plain, flax_optax])
def test_the_loop_is_jax_s(which, kind, data, tmp_path):
    _, program = write(kind, which, tmp_path / "step")
    state = which()[1]
    np.savez(tmp_path / "init.npz", *jax.tree.leaves(state))
    r = weft("train", program, "--data", f"npz:{data}")
    nameless = kind in ("nothing", "hlo")  # two numbers, and no word on which is the loss
    assert (r.returncode == 1 and "several results may be the loss" in r.stderr) == nameless, r.stderr
    loss = ["--loss", len(jax.tree.leaves(state)) + (which is flax_optax)] if nameless else []
    train(program, data, tmp_path / "run", "--init", tmp_path / "init.npz", *loss)
    losses, want = jax_loop(which)
    np.testing.assert_allclose(losses_of(tmp_path / "run"), losses, rtol=2e-5)
    got = state_of(tmp_path / "run")
    assert len(got) == len(want)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)


def test_init_by_name_and_by_program(data, tmp_path):
    _, program = write("names", plain, tmp_path / "step")
    params, slots, key = plain()[1]
    safetensors.numpy.save_file({"in.w": np.asarray(params["in"]["w"]), "in.b": np.asarray(params["in"]["b"]),
                                 "out.w": np.asarray(params["out"]["w"])}, tmp_path / "p.safetensors")
    r = train(program, data, tmp_path / "a", "--init", tmp_path / "p.safetensors", "--seed", 3)
    assert "3 of 7, from slots" in r.stderr and "zeros" in r.stderr

    def init(key):
        return params, slots, jax.random.key_data(jax.random.wrap_key_data(key))
    (tmp_path / "init.mlir").write_text(jax.jit(init).lower(key).as_text())
    train(program, data, tmp_path / "b", "--init-program", tmp_path / "init.mlir", "--seed", 3)
    losses, _ = jax_loop(plain)
    for run in "ab":
        np.testing.assert_allclose(losses_of(tmp_path / run), losses, rtol=2e-5)


def test_resume_is_bit_for_bit(data, tmp_path):
    _, program = write("bytecode", plain, tmp_path / "step")
    train(program, data, tmp_path / "whole")
    train(program, data, tmp_path / "half", steps=5)
    program.unlink()  # the run has its own copy
    r = weft("train", "--resume", tmp_path / "half", "--steps", STEPS, "--no-compare", "--out", tmp_path / "half")
    assert r.returncode == 0, r.stderr
    for a, b in zip(state_of(tmp_path / "whole"), state_of(tmp_path / "half")):
        np.testing.assert_array_equal(a, b)
    r = weft("predict", tmp_path / "half", "x.png")
    assert r.returncode == 1 and "--predict-program" in r.stderr


def test_order_of_results_and_fixed_arguments(data, tmp_path):
    def step(params, slots, lr, batch):
        value, g = jax.value_and_grad(lambda p: jnp.mean((batch["x"] @ p - 1) ** 2))(params)
        slots = 0.5 * slots + g
        return value, slots, params - lr * slots
    args = (jnp.ones(6), jnp.zeros(6), jnp.float32(0), {"x": jnp.zeros((BATCH, 6)), "y": jnp.zeros(BATCH, jnp.int32)})
    (tmp_path / "s.mlir").write_text(jax.jit(step, keep_unused=True).lower(*args).as_text(debug_info=True))
    r = weft("train", tmp_path / "s.mlir", "--data", f"npz:{data}", "--steps", 2)
    assert r.returncode == 1 and "lr" in r.stderr and "--set lr=NUMBER" in r.stderr
    np.savez(tmp_path / "init.npz", params=np.ones(6, np.float32))
    train(tmp_path / "s.mlir", data, tmp_path / "run", "--set", "lr=0.05", "--state", "params=2,slots=1", "--init", tmp_path / "init.npz")
    state, want = args[:2], []
    for i in range(STEPS):
        loss, slots, params = jax.jit(step)(*state, jnp.float32(0.05), {"x": X[i * BATCH:(i + 1) * BATCH], "y": args[3]["y"]})
        state = params, slots
        want.append(float(loss))
    np.testing.assert_allclose(losses_of(tmp_path / "run"), want, rtol=2e-5)


def test_arguments_in_another_order(data, tmp_path):
    """As PyTorch/XLA traces them: no names, the order of first use. And a number with another name is no next value."""
    def step(b, w, x, out, y, lr):
        def loss(p):
            return xent(jnp.tanh(x @ p[0] + p[1]) @ p[2], y)
        value, g = jax.value_and_grad(loss)((w, b, out))
        return w - lr * g[0], b - lr * g[1], out - lr * g[2], value
    rng = np.random.default_rng(2)
    w, b, out = (rng.normal(size=s).astype(np.float32) for s in ((6, 8), (8,), (8, 3)))
    text = jax.jit(step).lower(b, w, X[:BATCH], out, Y[:BATCH], 0.1).as_text()
    (tmp_path / "s.mlir").write_text(re.sub(r' \{jax.result_info = "[^"]*"\}', "", text))
    np.savez(tmp_path / "init.npz", in0=b, in1=w, in3=out)
    train(tmp_path / "s.mlir", data, tmp_path / "run", "--set", "arg5=0.1", "--init", tmp_path / "init.npz")
    want = []
    for i in range(STEPS):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        w, b, out, loss = jax.jit(step)(b, w, X[rows], out, Y[rows], 0.1)
        want.append(float(loss))
    np.testing.assert_allclose(losses_of(tmp_path / "run"), want, rtol=2e-5)

    def normed(w, lr, x, y):
        value, g = jax.value_and_grad(lambda w: xent(x @ w, y))(w)
        return w - lr * g, {"loss": value, "norm": jnp.sum(g * g)}
    (tmp_path / "n.mlir").write_text(jax.jit(normed).lower(np.zeros((6, 3), "f"), 0.1, X[:BATCH], Y[:BATCH]).as_text(debug_info=True))
    r = weft("train", tmp_path / "n.mlir", "--data", f"npz:{data}", "--steps", 2)
    assert r.returncode == 1 and "argument 1 (lr)" in r.stderr, r.stderr


def test_pictures_become_what_the_step_takes(tmp_path):
    images = RNG.integers(0, 255, (40, 8, 8, 3)).astype(np.uint8)
    labels = RNG.integers(0, 4, 40).astype(np.int64)
    np.savez(tmp_path / "p.npz", x_train=images, y_train=labels, x_test=images[:8], y_test=labels[:8])

    def step(w, x, y):  # channels first, one hot, as PyTorch and Keras have them
        value, g = jax.value_and_grad(lambda w: -jnp.mean(jnp.sum(y * jax.nn.log_softmax(x.reshape(20, -1) @ w), -1)))(w)
        return w - 0.1 * g, value
    (tmp_path / "s.mlir").write_text(jax.jit(step).lower(jnp.zeros((192, 4)), jnp.zeros((20, 3, 8, 8)), jnp.zeros((20, 4))).as_text())
    train(tmp_path / "s.mlir", tmp_path / "p.npz", tmp_path / "run", "--zeros", steps=4)
    w, want = np.zeros((192, 4), np.float32), []
    for i in range(4):
        rows = slice(i % 2 * 20, i % 2 * 20 + 20)
        w, loss = jax.jit(step)(w, (images[rows] / 255).astype(np.float32).transpose(0, 3, 1, 2), np.eye(4, dtype=np.float32)[labels[rows]])
        want.append(float(loss))
    np.testing.assert_allclose(losses_of(tmp_path / "run"), want, rtol=2e-5)


def test_evaluation(tmp_path):
    def step(params, x, y):
        value, g = jax.value_and_grad(lambda p: xent(x @ p["w"] + p["b"], y))(params)
        return jax.tree.map(lambda p, d: p - 0.2 * d, params, g), {"loss": value}

    def evaluate(params, x, y):
        z = x @ params["w"] + params["b"]
        return {"loss": xent(z, y), "accuracy": (z.argmax(-1) == y).mean()}
    params = {"b": np.zeros(3, "f"), "w": np.zeros((6, 3), "f")}
    (tmp_path / "s.mlir").write_text(jax.jit(step).lower(params, X[:16], Y[:16]).as_text(debug_info=True))
    (tmp_path / "e.mlir").write_text(jax.jit(evaluate).lower(params, X[:20], Y[:20]).as_text(debug_info=True))
    np.savez(tmp_path / "d.npz", x_train=X, y_train=Y, x_test=X[:50], y_test=Y[:50])
    r = train(tmp_path / "s.mlir", tmp_path / "d.npz", tmp_path / "run", "--zeros", "--eval-program", tmp_path / "e.mlir", "--eval-every", 6)
    for i in range(STEPS):
        params = jax.jit(step)(params, X[i * 16:i * 16 + 16], Y[i * 16:i * 16 + 16])[0]
    want = evaluate(params, X[:40], Y[:40])  # whole batches of 20
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert result["test_loss"] == pytest.approx(float(want["loss"]), rel=1e-4) and result["test_accuracy"] == pytest.approx(float(want["accuracy"]))
    assert "test    step 6 " in r.stderr


def test_the_example(root, tmp_path):
    r = subprocess.run([sys.executable, root / "examples/train_step.py", tmp_path / "step"], capture_output=True, text=True, timeout=300,
                       env=dict(os.environ, JAX_PLATFORMS="cpu"))
    assert r.returncode == 0, r.stderr
    labels = RNG.integers(0, 10, 512)
    images = (RNG.integers(0, 100, (512, 28, 28)) + 15 * labels[:, None, None]).astype(np.uint8)
    np.savez(tmp_path / "d.npz", x_train=images, y_train=labels, x_test=images[:8], y_test=labels[:8])
    train(tmp_path / "step/step.mlirbc", tmp_path / "d.npz", tmp_path / "run", "--init", tmp_path / "step/init.npz", steps=60)
    losses = losses_of(tmp_path / "run")
    assert losses[0] > 2 > 1.9 > losses[-1]
    events = EventAccumulator(str(tmp_path / "run")).Reload()
    assert {"train/accuracy", "train/gradient_norm"} <= set(events.Tags()["scalars"])


def test_a_chip_and_a_profile(data, tmp_path):
    _, program = write("bytecode", plain, tmp_path / "step")
    r = weft("train", program, "--data", f"npz:{data}", "--steps", 6, "--device", "tpu-v3-8", "--profile", tmp_path / "p", "--json", "--no-compare")
    assert r.returncode == 0, r.stderr
    result = json.loads(r.stdout)
    assert 0 < result["step_s"] < 1e-3 and result["batch"] == BATCH and (tmp_path / "p/report.html").exists()
    r = weft("train", program, "--data", "synthetic", "--steps", 3)
    assert r.returncode == 0 and "MADE-UP" in r.stderr and "tpu" in r.stdout.lower() + r.stderr.lower()


@pytest.mark.parametrize("flags, says", [
    (["--batch", 8], "made for 16"),
    (["--lr", 0.1], "has its own"),
    (["--loss", "nothing"], "no such result"),
    (["--state", "99"], "no such argument"),
    (["--batch-args", "x=pictures,y"], "no such field"),
    (["--set", "x"], "ARGUMENT=NUMBER"),
    (["--pixels", "blue"], "unit, normal or bytes"),
    (["--replicas", 3], "does not divide"),
])
def test_mistakes_are_named(flags, says, data, tmp_path):
    _, program = write("names", plain, tmp_path / "step")
    r = weft("train", program, "--data", f"npz:{data}", "--steps", 2, *flags)
    assert r.returncode in (1, 2) and says in r.stderr, r.stderr


def test_two_arguments_of_one_name(data, tmp_path):
    (tmp_path / "s.mlir").write_text('''
func.func public @main(%arg0: tensor<6xf32> loc("w"), %arg1: tensor<6xf32> loc("w"), %arg2: tensor<16x6xf32> loc("x")) -> (tensor<6xf32>, tensor<6xf32>, tensor<f32>) {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%arg2 init: %c) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x6xf32>, tensor<f32>) -> tensor<f32>
  %a = stablehlo.add %arg0, %arg1 : tensor<6xf32>
  return %a, %arg0, %s : tensor<6xf32>, tensor<6xf32>, tensor<f32>
}''')
    np.savez(tmp_path / "init.npz", in0=np.ones(6, "f"), in1=np.zeros(6, "f"))
    train(tmp_path / "s.mlir", data, tmp_path / "run", "--init", tmp_path / "init.npz", steps=5)
    assert [v[0] for v in state_of(tmp_path / "run")] == [8, 5]  # Fibonacci's


def test_programs_that_are_no_steps(data, tmp_path):
    (tmp_path / "f.mlir").write_text(jax.jit(lambda x: jnp.sum(x, 1)).lower(X[:16]).as_text())
    r = weft("train", tmp_path / "f.mlir", "--data", f"npz:{data}")
    assert r.returncode == 1 and "nothing is state" in r.stderr and "arguments:" in r.stderr
    assert "nothing is state" in r.stderr.strip().splitlines()[-2]  # the lists do not hide it
    r = weft("train", "mnist", "--state", "x", "--data", "synthetic", "--steps", 1)
    assert r.returncode == 2 and "from a file" in r.stderr
