"""Runs of train steps of one's own in use: weft predict, eval and export by programs that came beside the step, against JAX with the
weights of the checkpoint."""
import importlib.util
import json

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import safetensors.numpy
from PIL import Image

from conftest import weft

RNG = np.random.default_rng(5)
BATCH, STEPS = 16, 10


class Net(nn.Module):
    out: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.out)(nn.relu(nn.Dense(12)(x.reshape(x.shape[0], -1))))


def programs(place, net, shape, loss, y_shape=(), y_type=np.int32):
    """step, eval, predict of another batch each; the parameters that they begin with in init.npz."""
    tx = optax.adam(1e-2)
    x, y = np.zeros((BATCH, *shape), "f"), np.zeros((BATCH, *y_shape), y_type)
    params = net.init(jax.random.PRNGKey(0), x)["params"]

    def step(params, opt, x, y):
        value, g = jax.value_and_grad(lambda p: loss(net.apply({"params": p}, x), y))(params)
        u, opt = tx.update(g, opt, params)
        return optax.apply_updates(params, u), opt, {"loss": value}

    def evaluate(params, x, y):
        z = net.apply({"params": params}, x)
        return {"loss": loss(z, y), **({"accuracy": (z.argmax(-1) == y).mean()} if z.shape[-1] > 1 else {})}

    def write(f, name, *args):
        (place / name).write_text(jax.jit(f).lower(*args).as_text(debug_info=True))
    write(step, "s.mlir", params, tx.init(params), x, y)
    write(evaluate, "e.mlir", params, x[:10], y[:10])
    write(lambda params, x: {"logits": net.apply({"params": params}, x), "hidden": x.sum(tuple(range(1, x.ndim)))}, "p.mlir", params, x[:8])
    np.savez(place / "init.npz", **{f"params.{m}.{k}": v for m, part in params.items() for k, v in part.items()})


def train(place, *flags):
    r = weft("train", place / "s.mlir", "--init", place / "init.npz", "--steps", STEPS, "--no-compare", "--out", place / "run", *flags)
    assert r.returncode == 0, r.stderr
    return r


def weights(run):
    t = safetensors.numpy.load_file(run / "checkpoint.safetensors")
    tree = {}
    for name, value in t.items():
        if name.startswith("params"):
            _, m, k = name.replace("']", "").split("['")
            tree.setdefault(m, {})[k] = value
    return tree


def classes(z, y):
    return optax.softmax_cross_entropy_with_integer_labels(z, y).mean()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    place = tmp_path_factory.mktemp("pictures")
    programs(place, Net(4), (6, 6, 3), classes)
    x, y = RNG.integers(0, 255, (80, 6, 6, 3)).astype(np.uint8), RNG.integers(0, 4, 80)
    np.savez(place / "d.npz", x_train=x, y_train=y, x_test=x[:25], y_test=y[:25])
    train(place, "--data", f"npz:{place / 'd.npz'}", "--eval-program", place / "e.mlir", "--predict-program", place / "p.mlir", "--eval-every", 5)
    return place, x, y


def test_predict_pictures(pictures):
    place, x, _ = pictures
    Image.fromarray(x[3]).save(place / "3.png")
    np.save(place / "some.npy", x[:13])
    r = weft("predict", place / "run", place / "3.png", place / "some.npy", place / "d.npz", "--json", "--measure", 2, "--top", 4)
    assert r.returncode == 0, r.stderr
    said = json.loads(r.stdout)
    assert said["batch"] == 8 and len(said["answers"]) == 1 + 13 + 25  # of the npz its x_test
    want = jax.nn.softmax(Net(4).apply({"params": weights(place / "run")}, np.concatenate([x[3:4], x[:13], x[:25]]) / np.float32(255)))
    for answer, w in zip(said["answers"], np.asarray(want)):
        got = {a["class"]: a["p"] for a in answer["top"]}
        np.testing.assert_allclose([got[k] for k in range(4)], w, rtol=1e-4, atol=1e-6)


def test_eval_is_what_training_said(pictures, tmp_path):
    place, x, y = pictures
    result = json.loads((place / "run/result.json").read_text())
    r = weft("eval", place / "run", "--json")
    assert r.returncode == 0, r.stderr
    said = json.loads(r.stdout)
    z = Net(4).apply({"params": weights(place / "run")}, x[:20] / np.float32(255))
    assert said["examples"] == 20 and said["loss"] == pytest.approx(result["test_loss"], rel=1e-5) == pytest.approx(float(classes(z, y[:20])), rel=1e-4)
    assert said["accuracy"] == pytest.approx(float((np.argmax(z, -1) == y[:20]).mean()))
    r = weft("train", "--resume", place / "run", "--steps", STEPS + 2, "--no-compare", "--json", "--out", tmp_path / "on")  # goes on with all its programs
    assert r.returncode == 0 and json.loads(r.stdout)["test_loss"] > 0, r.stderr


def test_export(pictures, tmp_path):
    place, x, _ = pictures
    r = weft("export", place / "run", "--to", tmp_path / "out")
    assert r.returncode == 0, r.stderr

    def load(name):
        spec = importlib.util.spec_from_file_location(name, tmp_path / "out" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.load()
    params = weights(place / "run")
    got = load("load_jax")(x[:8])
    np.testing.assert_allclose(got, Net(4).apply({"params": params}, x[:8] / np.float32(255)), rtol=1e-4, atol=1e-5)
    state = load("load_state")
    jax.tree.map(np.testing.assert_array_equal, state["params"], params)
    assert set(state) == {"params", "opt"}


def test_numbers_of_a_csv(tmp_path):
    """A regression: columns are standardised as in training, answers are numbers."""
    programs(tmp_path, Net(1), (3,), lambda z, y: jnp.mean((z[:, 0] - y) ** 2), y_type=np.float32)
    x = RNG.normal(size=(60, 3)) * [1, 10, 100] + 5
    rows = [f"{a:.6f},{b:.6f},{c:.6f},{a + b / 10 + 0.5:.6f}" for a, b, c in x]
    (tmp_path / "t.csv").write_text("a,b,c,y\n" + "\n".join(rows) + "\n")
    (tmp_path / "test.csv").write_text("a,b,c,y\n" + "\n".join(rows[:9]) + "\n")
    train(tmp_path, "--data", f"csv:{tmp_path / 't.csv'},{tmp_path / 'test.csv'}", "--predict-program", tmp_path / "p.mlir")
    (tmp_path / "q.csv").write_text("a,b,c\n" + "\n".join(r.rsplit(",", 1)[0] for r in rows[:11]) + "\n")
    r = weft("predict", tmp_path / "run", tmp_path / "q.csv", tmp_path / "t.csv", "--json", "--measure", 0)
    assert r.returncode == 0, r.stderr
    got = [a["values"] for a in json.loads(r.stdout)["answers"]]
    seen = np.array([[float(v) for v in r.split(",")[:3]] for r in rows])  # what it learnt from
    want = Net(1).apply({"params": weights(tmp_path / "run")}, ((seen - seen.mean(0)) / seen.std(0)).astype(np.float32))
    np.testing.assert_allclose(got, np.concatenate([want[:11], want]), rtol=1e-3, atol=1e-4)
    r = weft("eval", tmp_path / "run")
    assert r.returncode == 1 and "--eval-program" in r.stderr
    r = weft("serve", tmp_path / "run", "--port", 0)
    assert r.returncode == 1 and "does not choose among classes" in r.stderr


def test_a_run_without_programs(pictures, tmp_path):
    place, x, _ = pictures
    r = weft("train", place / "s.mlir", "--zeros", "--data", f"npz:{place / 'd.npz'}", "--steps", 2, "--no-compare", "--out", tmp_path / "run")
    assert r.returncode == 0, r.stderr
    Image.fromarray(x[0]).save(tmp_path / "0.png")
    r = weft("predict", tmp_path / "run", tmp_path / "0.png")
    assert r.returncode == 1 and "--predict-program" in r.stderr
    r = weft("predict", tmp_path / "run", tmp_path / "0.png", "--predict-program", place / "p.mlir", "--measure", 0, "--top", 4)
    assert r.returncode == 0 and r.stdout.count("%") == 4 and "by types and order" not in r.stderr, r.stderr
    net = Net(4)
    (tmp_path / "n.mlir").write_text(jax.jit(lambda p, x: net.apply({"params": p}, x)).lower(weights(tmp_path / "run"), np.zeros((8, 6, 6, 3), "f")).as_text())
    again = weft("predict", tmp_path / "run", tmp_path / "0.png", "--predict-program", tmp_path / "n.mlir", "--measure", 0, "--top", 4)
    assert again.stdout == r.stdout and "by types and order" in again.stderr
    r = weft("export", tmp_path / "run", "--to", tmp_path / "out")
    assert r.returncode == 0 and (tmp_path / "out/state.safetensors").exists() and "--predict-program" in r.stdout
    r = weft("predict", tmp_path / "run", tmp_path / "0.png", "--predict-program", place / "e.mlir")
    assert r.returncode == 1 and "no result has a row for each of its 10 examples" in r.stderr
