"""weft train PROGRAM: what is said wrongly of a step of one's own is refused before anything runs, by name; nothing is ignored."""
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from conftest import weft

RNG = np.random.default_rng(1)
X, Y = RNG.normal(size=(64, 6)).astype(np.float32), RNG.integers(0, 3, 64).astype(np.int32)


def step(params, count, lr, x, y):
    def loss(p):
        z = x @ p["w"] + p["b"]
        return jnp.mean(jax.nn.logsumexp(z, -1) - jnp.take_along_axis(z, y[:, None], -1)[:, 0])
    value, g = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, d: p - lr * d, params, g), count + 1, {"loss": value}


def evaluate(params, x, y):
    return {"loss": jnp.mean((x @ params["w"] + params["b"]) ** 2) + 0.0 * jnp.sum(y)}


PARAMS = {"b": np.zeros(3, "f"), "w": np.zeros((6, 3), "f")}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    at = tmp_path_factory.mktemp("own")
    (at / "s.mlir").write_text(jax.jit(step).lower(PARAMS, np.int32(0), np.float32(0), X[:16], Y[:16]).as_text(debug_info=True))
    (at / "e.mlir").write_text(jax.jit(evaluate, keep_unused=True).lower(PARAMS, X[:20], Y[:20]).as_text(debug_info=True))
    np.savez(at / "d.npz", x_train=X, y_train=Y, x_test=X[:50], y_test=Y[:50])
    np.savez(at / "few.npz", x_train=X, y_train=Y, x_test=X[:10], y_test=Y[:10])
    np.savez(at / "init.npz", **{"params.w": PARAMS["w"], "params.b": PARAMS["b"]})
    r = weft("train", at / "s.mlir", "--data", f"npz:{at / 'd.npz'}", "--set", "lr=0.25", "--zeros", "--steps", 4, "--no-compare",
             "--out", at / "run", "--log", at / "log")
    assert r.returncode == 0, r.stderr
    (at / "said").write_text(r.stderr)
    return at


def test_what_is_missing_is_named_at_once(place, tmp_path):
    """All arguments that have no value, not the first of them; and a batch that the step's data do not fill cannot be made smaller by a flag."""
    (tmp_path / "s.mlir").write_text(jax.jit(lambda p, rate, mean, x, y: (p - rate * (x.T @ x)[0] * mean, jnp.mean(x) + 0.0 * jnp.sum(y)), keep_unused=True)
                                     .lower(X[0], np.float32(0), X[1], X[:16], Y[:16]).as_text(debug_info=True))
    r = weft("train", tmp_path / "s.mlir", "--data", f"npz:{place / 'd.npz'}", "--state", "p=result[0]", "--zeros", "--steps", 2, "--no-compare")
    assert r.returncode == 1 and "1 (rate), a tensor<f32>; 2 (mean), a tensor<6xf32>" in r.stderr, r.stderr
    np.savez(tmp_path / "ten.npz", x_train=X[:10], y_train=Y[:10])
    r = weft("train", place / "s.mlir", "--data", f"npz:{tmp_path / 'ten.npz'}", "--set", "lr=1", "--zeros", "--steps", 2, "--no-compare")
    assert r.returncode == 1 and "export the step for a batch of at most 10" in r.stderr and "--batch" not in r.stderr, r.stderr


def test_more_classes_than_the_network_answers(place, tmp_path):
    forward = jax.jit(lambda params, x: x @ params["w"] + params["b"])
    (tmp_path / "f.mlir").write_text(forward.lower(PARAMS, X[:16]).as_text(debug_info=True))
    for n, noted in ((4, True), (3, False)):
        (tmp_path / "t.csv").write_text("a,b,c,d,e,f,class\n" + "".join(",".join(map(str, row)) + f",class {i % n}\n" for i, row in enumerate(X)))
        r = weft("train", place / "s.mlir", "--data", f"csv:{tmp_path / 't.csv'}", "--set", "lr=1", "--zeros", "--steps", 2, "--no-compare",
                 "--predict-program", tmp_path / "f.mlir")
        assert (noted or r.returncode == 0) and (f"answers 3 numbers for an example, and the data have {n} classes" in r.stderr) == noted, r.stderr


@pytest.mark.parametrize("flags, says", [
    (["--set", "lr=nan"], "is no such number"),
    (["--set", "lr=inf"], "is no such number"),
    (["--set", "lr=1e999"], "is no such number"),
    (["--set", "lr=fast"], "is no such number"),
    (["--set", "count=1.5"], "is no such number"),
    (["--set", "lr=1", "--set", "lr=2"], "was set before"),
    (["--set", "rate=1"], "neither state nor batch: lr"),
    (["--set", "=1"], "ARGUMENT=NUMBER"),
    (["--set", "lr=1", "--state", ""], "empty place"),
    (["--set", "lr=1", "--state", "0-"], "no such argument"),
    (["--set", "lr=1", "--state", "params,,count"], "empty place"),
    (["--set", "lr=1", "--batch-args", "x=nosuch,y"], "--batch-args x=nosuch: the data have no such field"),
    (["--set", "lr=1", "--init", "{at}/init.npz", "--zeros"], "both say what the state begins with"),
    (["--set", "lr=1", "--eval-batch", 8], "wants --eval-program"),
    (["--set", "lr=1", "--eval-program", "{at}/e.mlir", "--eval-batch", 8], "is made for 20"),
    (["--set", "lr=1", "--eval-program", "{at}/e.mlir", "--data", "npz:{at}/few.npz"], "10 test examples: none would be full"),
    (["--set", "lr=1", "--data", "synthetic", "--classes", 2**32], "--classes wants"),
    (["--set", "lr=1", "--log", "{at}/nowhere/log"], "NOT_FOUND: cannot write the log"),
    (["--set", "lr=1", "--log", "/dev/full"], "log '/dev/full' is not whole"),
])
def test_flags(flags, says, place):
    flags = [str(f).format(at=place) for f in flags]
    r = weft("train", place / "s.mlir", "--data", f"npz:{place / 'd.npz'}", "--steps", 2, "--no-compare", *flags)
    assert r.returncode in (1, 2) and says in r.stderr, r.stderr
    assert "/dev/full" in says or "epoch 1" not in r.stderr  # before it trains


@pytest.mark.parametrize("flags, says", [
    (["--zeros"], "--zeros begins a new one"),
    (["--init-program", "i.mlir"], "--init-program begins a new one"),
    (["--init", "{at}/init.npz"], "not both"),
])
def test_what_a_run_that_goes_on_does_not_take(flags, says, place):
    r = weft("train", "--resume", place / "run", "--steps", 8, *[f.format(at=place) for f in flags])
    assert r.returncode in (1, 2) and says in r.stderr, r.stderr


def test_going_on(place, tmp_path):
    """With another rate, which counts; result.json and the last line know all steps."""
    r = weft("train", "mlp", "--resume", place / "run", "--steps", 8)
    assert r.returncode == 1 and "a train step from a file, not of model 'mlp'" in r.stderr, r.stderr
    r = weft("train", "--resume", place / "run", "--steps", 6, "--set", "lr=0.5", "--no-compare", "--out", tmp_path / "b", "--log", tmp_path / "log")
    assert r.returncode == 0 and "after 6 steps, 2 of them now" in r.stdout, r.stderr
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["learning_rate"] for line in lines] == [0.5, 0.5]
    result = json.loads((tmp_path / "b/result.json").read_text())
    assert (result["step"], result["steps"]) == (6, 2)


def test_what_is_said_of_a_run(place):
    """One count of the state; the rate of an argument, no key of what the step does not say."""
    said, first = (place / "said").read_text(), json.loads((place / "log").read_text().splitlines()[0])
    assert "22 numbers" in said and "(22 numbers of state)" in said, said
    assert first["learning_rate"] == 0.25 and "accuracy" not in first


@pytest.mark.parametrize("channels, known", [(10, True), (20, False)])
def test_many_channels_have_no_mean(channels, known, tmp_path):
    """More than 16 channels, --pixels normal."""
    def train(w, x, y):
        value, g = jax.value_and_grad(lambda w: jnp.mean((x.reshape(8, -1) @ w) ** 2) + 0.0 * jnp.sum(y))(w)
        return w - 0.1 * g, value
    text = jax.jit(train, keep_unused=True).lower(jnp.zeros(16 * channels), jnp.zeros((8, 4, 4, channels)), jnp.zeros(8, jnp.int32)).as_text(debug_info=True)
    (tmp_path / "s.mlir").write_text(text)
    np.savez(tmp_path / "d.npz", x=RNG.integers(0, 255, (16, 4, 4, channels)).astype(np.uint8), y=np.zeros(16, np.int32))
    command = "train", tmp_path / "s.mlir", "--data", f"npz:{tmp_path / 'd.npz'}", "--zeros", "--steps", 2, "--no-compare"
    r = weft(*command, "--pixels", "normal")
    assert (r.returncode == 0) is known and ("no mean and deviation of the 20 channels" in r.stderr) is not known, r.stderr
    assert weft(*command).returncode == 0


def test_no_examples(tmp_path):
    """A batch of no rows."""
    text = jax.jit(lambda w, x: (w - jnp.sum(x), jnp.sum(w))).lower(jnp.zeros(()), jnp.zeros((0, 4))).as_text(debug_info=True)
    (tmp_path / "s.mlir").write_text(text)
    r = weft("train", tmp_path / "s.mlir", "--data", "synthetic", "--zeros", "--steps", 1)
    assert r.returncode == 1 and "takes 0 examples" in r.stderr, r.stderr


def test_grey_pictures_without_a_channel(tmp_path):
    """(n, H, W) bytes go where (B, H, W, 1) is taken, divided by 255."""
    x = RNG.integers(0, 255, (8, 4, 4)).astype(np.uint8)
    text = jax.jit(lambda w, x: (w + jnp.sum(x), jnp.mean(x))).lower(jnp.zeros(()), jnp.zeros((8, 4, 4, 1))).as_text(debug_info=True)
    (tmp_path / "s.mlir").write_text(text)
    np.savez(tmp_path / "d.npz", x=x, y=np.zeros(8, np.uint8))
    r = weft("train", tmp_path / "s.mlir", "--data", f"npz:{tmp_path / 'd.npz'}", "--zeros", "--steps", 1, "--no-compare", "--json")
    assert r.returncode == 0 and json.loads(r.stdout)["train_loss"] == pytest.approx(x.mean() / 255, rel=1e-5), r.stderr
