"""weft train: the step programs against the same networks written in JAX, the files it writes read by other people's
readers, and the same command on XLA's CPU plugin."""
import json
import pathlib
import signal
import struct
import subprocess

import numpy as np
import pytest

import jax
import jax.numpy as jnp
from jax import lax

from conftest import BUILD, weft

TEXT = "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer. " * 60


def header(path):
    """Names in file order: the order of the step program's state."""
    raw = pathlib.Path(path).read_bytes()
    n = struct.unpack("<Q", raw[:8])[0]
    return [k for k in json.loads(raw[8:8 + n]) if k != "__metadata__"]


def compile_xla(text):
    """A program on XLA's CPU backend: a function from a list of arrays to a list of arrays."""
    from jax._src import compiler, xla_bridge
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    from jax._src.sharding_impls import SingleDeviceSharding
    cpu = jax.devices("cpu")[0]
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1, device_assignment=np.array([[0]]))
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        exe = compiler.backend_compile_and_load(xla_bridge.get_backend("cpu"), module,
                                                SingleDeviceSharding(cpu)._internal_device_list, options, [])

    def run(args):
        bufs = [jax.device_put(np.array(x), cpu) for x in args]
        return [np.asarray(o[0]) for o in exe.execute_sharded(bufs).disassemble_into_single_device_arrays()]
    return run


def run_xla(text, args):
    return compile_xla(text)(args)


def xent(z, y):
    return jnp.mean(jax.nn.logsumexp(z, -1) - jnp.take_along_axis(z, y[..., None], -1)[..., 0])


def mnist(p, x, y):
    def conv(v, name):
        return jax.nn.relu(lax.conv_general_dilated(v, p[name + "/kernel"], (1, 1), "VALID",
                                                    dimension_numbers=("NHWC", "HWIO", "NHWC")) + p[name + "/bias"])
    x = (x / 255.0 - 0.5) / 0.29
    x = lax.reduce_window(conv(conv(x, "conv1"), "conv2"), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu(x.reshape(x.shape[0], -1) @ p["dense1/kernel"] + p["dense1/bias"])
    return xent(x @ p["dense2/kernel"] + p["dense2/bias"], y)


def lstm(p, x, y):
    x = p["embedding/table"][x].transpose(1, 0, 2)
    for name in ("lstm1", "lstm2"):
        def cell(s, g):
            h, c = s
            i, f, n, o = jnp.split(g + h @ p[name + "/recurrent"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(n)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        z = jnp.zeros((x.shape[1], p[name + "/recurrent"].shape[0]))
        x = lax.scan(cell, (z, z), x @ p[name + "/kernel"] + p[name + "/bias"])[1]
    return xent(x.transpose(1, 0, 2) @ p["out/kernel"] + p["out/bias"], y)


def gpt2(p, x, y):
    layers = 2

    def ln(n, v):
        d = v - v.mean(-1, keepdims=True)
        return d * lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-5) * p[n + "/scale"] + p[n + "/bias"]

    def dense(n, v):
        return v @ p[n + "/kernel"] + p[n + "/bias"]

    def attention(n, v):
        b, t, c = v.shape
        q, k, w = (u.reshape(b, t, layers, 64).transpose(0, 2, 1, 3) for u in jnp.split(dense(n + "qkv", v), 3, -1))
        s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8
        s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e30)
        o = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s, -1), w)
        return dense(n + "proj", o.transpose(0, 2, 1, 3).reshape(b, t, c))
    x = p["wte/table"][x] + p["wpe/table"][: x.shape[1]]
    for i in range(layers):
        h = f"h{i}/"
        x = x + attention(h, ln(h + "ln1", x))
        x = x + dense(h + "fcproj", jax.nn.gelu(dense(h + "fc", ln(h + "ln2", x)), approximate=True))
    return xent(ln("lnf", x) @ p["wte/table"].T, y)


def moe(p, x, y, experts=8, heads=1):
    """LLaMA with Mixtral's experts: two of a token's choice, each with so many places in a sequence."""
    def norm(n, v):
        return v * lax.rsqrt((v * v).mean(-1, keepdims=True) + 1e-5) * p[n + "/scale"]

    def rotary(v):
        t, d = v.shape[2], v.shape[3]
        a = jnp.arange(t)[:, None] * 1e4 ** (-2 * jnp.arange(d // 2) / d)
        left, right = v[..., :d // 2], v[..., d // 2:]
        return jnp.concatenate([left * jnp.cos(a) - right * jnp.sin(a), right * jnp.cos(a) + left * jnp.sin(a)], -1)

    def attention(n, v):
        b, t, c = v.shape
        q, k, w = ((v @ p[f"{n}{m}/kernel"]).reshape(b, t, heads, c // heads).transpose(0, 2, 1, 3) for m in "qkv")
        s = jnp.einsum("bhqd,bhkd->bhqk", rotary(q), rotary(k)) / (c // heads) ** 0.5
        s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e30)
        o = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s, -1), w)
        return o.transpose(0, 2, 1, 3).reshape(b, t, c) @ p[n + "o/kernel"]

    def feed(n, v):
        t = v.shape[1]
        likely = jax.nn.softmax(v @ p[n + "router/kernel"], -1)
        _, top = lax.top_k(likely, 2)
        chosen = jax.nn.one_hot(top, experts)  # (B, T, 2, E)
        gates = likely * chosen.sum(2)
        gates = gates / gates.sum(-1, keepdims=True)
        places = int(np.ceil(1.25 * 2 * t / experts))
        order = jnp.cumsum(jnp.concatenate([chosen[:, :, 0], chosen[:, :, 1]], 1), 1)  # first choices first
        at = jnp.stack([order[:, :t], order[:, t:]], 2) - 1
        found = (chosen * (at < places)).sum(2)
        h = jax.nn.silu(jnp.einsum("btc,eci->btei", v, p[n + "gate"])) * jnp.einsum("btc,eci->btei", v, p[n + "up"])
        out = jnp.einsum("btei,eic,bte->btc", h, p[n + "down"], gates * found)
        return out, experts * (chosen[:, :, 0].mean((0, 1)) * likely.mean((0, 1))).sum()
    x, uneven = p["wte/table"][x], 0
    for i in range(heads):  # --size: layers, and heads of 64
        h = f"h{i}/"
        x = x + attention(h, norm(h + "norm1", x))
        out, u = feed(h + "experts/", norm(h + "norm2", x))
        x, uneven = x + out, uneven + u
    return xent(norm("norm", x) @ p["wte/table"].T, y) + 0.01 * uneven / heads


def unet(p, x, y):
    def conv(n, v, pad="SAME"):
        return lax.conv_general_dilated(v, p[n + "/kernel"], (1, 1), pad, dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def twice(n, v):
        for i in "12":
            v = conv(f"{n}/unit{i}/conv", v)
            m = v.mean((0, 1, 2))
            v = (v - m) * lax.rsqrt(((v - m) ** 2).mean((0, 1, 2)) + 1e-5)
            v = jax.nn.relu(v * p[f"{n}/unit{i}/bn/scale"] + p[f"{n}/unit{i}/bn/bias"])
        return v
    x, beside = (x / 255.0 - 0.5) / 0.29, []
    for i in range(1, 5):
        beside.append(twice(f"down{i}", x))
        x = lax.reduce_window(beside[-1], -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = twice("bottom", x)
    for i in range(4, 0, -1):
        n = f"up{i}/larger"
        up = lax.conv_transpose(x, p[n + "/kernel"][::-1, ::-1], (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = twice(f"up{i}", jnp.concatenate([beside[i - 1], up + p[n + "/bias"]], -1))
    return xent(conv("out", x) + p["out/bias"], y)


def dlrm(p, x, ids, y, rows=50):
    def dense(n, v):
        return v @ p[n + "/kernel"] + p[n + "/bias"]
    for n in ("bottom1", "bottom2", "bottom3", "bottom"):
        x = jax.nn.relu(dense(n, x))
    v = jnp.concatenate([x[:, None], p["tables/table"][ids % rows + rows * jnp.arange(26)]], 1)
    below = np.tril_indices(27, -1)
    x = jnp.concatenate([x, jnp.einsum("bic,bjc->bij", v, v)[:, below[0], below[1]]], 1)
    for n in ("top1", "top2"):
        x = jax.nn.relu(dense(n, x))
    z = dense("out", x)[:, 0]
    return jnp.mean(jax.nn.softplus(z) - y * z)


@pytest.fixture
def text_file(tmp_path):
    f = tmp_path / "text.txt"
    f.write_text(TEXT)
    return f


CASES = {"mnist": (mnist, ["--data", "synthetic", "--batch", 8]),
         "lstm": (lstm, ["--batch", 4, "--length", 12, "--size", 32]),
         "gpt2": (gpt2, ["--batch", 2, "--length", 16, "--size", 2, "--decay", 0]),
         "moe": (moe, ["--batch", 2, "--length", 24, "--size", 1, "--decay", 0]),
         "unet": (unet, ["--data", "synthetic", "--batch", 2, "--size", 4]),
         "dlrm": (dlrm, ["--data", "synthetic", "--batch", 8, "--size", 50, "--optimizer", "adam", "--beta1", 0.9])}


@pytest.mark.parametrize("model", CASES)
def test_gradients_are_jax_s(model, tmp_path, text_file):
    loss, args = CASES[model]
    dropout = [] if model in ("moe", "unet", "dlrm") else ["--dropout", 0]
    args = ["train", model, *dropout, "--clip", 0, "--steps", 1, "--no-compare", *args]
    if "--data" not in args:
        args += ["--data", f"text:{text_file}"]
    r = weft(*args, "--dump-step", tmp_path / "step.mlir")
    assert r.returncode == 0, r.stderr
    r = weft(*args, "--out", tmp_path / "run")
    assert r.returncode == 0, r.stderr
    from safetensors.numpy import load_file
    names, state = header(tmp_path / "run/checkpoint.safetensors"), load_file(tmp_path / "run/checkpoint.safetensors")
    params = {k: v for k, v in state.items() if not k.startswith("opt/") and k not in ("step", "seed")}
    for k in state:
        if k.startswith("opt/"):
            state[k] = np.zeros_like(state[k])
    state["step"] = np.int32(0)
    rng = np.random.default_rng(1)
    if model == "mnist":
        x = rng.integers(0, 256, (8, 28, 28, 1)).astype(np.uint8), rng.integers(0, 10, 8).astype(np.int32)
    elif model == "unet":
        x = rng.integers(0, 256, (2, 64, 64, 3)).astype(np.uint8), rng.integers(0, 2, (2, 64, 64)).astype(np.int32)
    elif model == "dlrm":
        x = rng.normal(size=(8, 13)).astype(np.float32), rng.integers(0, 10**6, (8, 26)).astype(np.int32), rng.integers(0, 2, 8).astype(np.int32)
    else:
        shape = (args[args.index("--batch") + 1], args[args.index("--length") + 1])
        x = [rng.integers(0, 256, shape).astype(np.int32) for _ in range(2)]
    out = run_xla((tmp_path / "step.mlir").read_text(), [state[k] for k in names] + [*x])
    value, grads = jax.value_and_grad(loss)(params, *x)
    assert abs(out[-1][0] - value) < 1e-5 * abs(value)
    for name, new in zip(names, out):
        if not name.startswith("opt/m/"):
            continue
        want = np.asarray(grads[name[6:]])
        got = new / 0.1  # m = (1 - beta1) g after one step
        # batch normalisation takes a bias before it away, but for rounding
        bound = 1e-4 if model == "unet" else 1e-5
        assert np.abs(got - want).max() <= bound * np.abs(want).max() + 1e-9, name


def test_files_and_resume(tmp_path):
    args = ["train", "mlp", "--size", 16, "--data", "synthetic", "--batch", 64, "--no-compare", "--out", tmp_path / "run"]
    r = weft(*args, "--steps", 6)
    assert r.returncode == 0, r.stderr
    assert "lr 0.0001" in r.stderr and "13,002 weights" in r.stderr
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    acc = EventAccumulator(str(tmp_path / "run")).Reload()
    assert [e.step for e in acc.Scalars("train/loss")] == [1, 2, 3, 4, 5, 6]
    assert all(np.isfinite(e.value) for e in acc.Scalars("train/loss"))
    assert {"test/accuracy", "test/loss", "train/accuracy", "train/learning_rate"} <= set(acc.Tags()["scalars"])
    from safetensors import safe_open
    with safe_open(tmp_path / "run/checkpoint.safetensors", "np") as f:
        assert f.metadata()["model"] == "mlp" and f.get_tensor("step") == 6
        assert f.get_tensor("dense1/kernel").shape == (784, 16)
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert result["steps"] == 6 and result["exposed_input_s"] >= 0
    assert "devices" not in result
    assert result["settings"]["optimizer"] == "adam" and result["settings"]["lr"] == 1e-4 and result["settings"]["batch"] == 64
    assert result["weights"] == 13002 and result["mean"] == [0.5], "one number for grey pictures"
    args.remove("--no-compare")
    r = weft(*args, "--steps", 9, "--resume", tmp_path / "run")
    assert r.returncode == 0, r.stderr
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert result["steps"] == 3
    table = result["devices"]  # this CPU, then five virtual devices; all of it in the text too
    assert len(table) == 6 and table[0]["measured"] and not any(d["measured"] for d in table[1:])
    for d in table[1:]:
        assert d["fits"] and 0 < d["utilisation"] < 1 and d["energy_j"] > 0 and d["usd"] > 0
    assert all(d["device"] in r.stdout for d in table)


def test_xla_s_plugin_trains_the_same(tmp_path):
    plugin = pytest.importorskip("lammps_jax_pjrt_cpu")
    path = next(pathlib.Path(plugin.__file__).parent.glob("*.so"))
    results = []
    for extra in (["--device", "cpu"], ["--plugin", path]):
        out = tmp_path / f"run{len(results)}"
        r = weft("train", "mlp", "--size", 64, "--data", "synthetic", "--batch", 64, "--steps", 20, "--no-compare",
                 "--out", out, *extra)
        assert r.returncode == 0, r.stderr
        results.append(json.loads((out / "result.json").read_text()))
    assert results[0]["train_loss"] == pytest.approx(results[1]["train_loss"], rel=1e-4)
    assert results[0]["test_loss"] == pytest.approx(results[1]["test_loss"], rel=1e-4)


def test_without_numbers(tmp_path):
    """A virtual chip that computes nothing: no loss that looks like one, no checkpoint of zeros."""
    out = tmp_path / "run"
    r = weft("train", "mlp", "--size", 64, "--data", "synthetic", "--batch", 64, "--steps", 3, "--no-compare",
             "--device", "tpu-v2", "--out", out, env={"WEFT_PHANTOM": "1"})
    assert r.returncode == 0, r.stderr
    assert "no numbers" in r.stderr and "memory and time only after 3 steps" in r.stdout
    assert "loss 0" not in r.stderr + r.stdout and "accuracy 0" not in r.stderr + r.stdout
    result = json.loads((out / "result.json").read_text())
    assert result["train_loss"] is None and result["test_loss"] is None and result["peak_bytes"] > 0
    assert [p.name for p in out.iterdir()] == ["result.json"]


def test_an_interrupt_keeps_the_state(tmp_path):
    """Ctrl-C ends the step, writes the checkpoint and does not stay for the test set; the folder goes on from there."""
    out = tmp_path / "run"
    command = [BUILD / "weft", "train", "mlp", "--size", 64, "--data", "synthetic", "--batch", 64, "--out", out]
    with subprocess.Popen([*map(str, command), "--epochs", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as p:
        while "step 1/" not in p.stderr.readline():
            pass
        p.send_signal(signal.SIGINT)
        stdout, stderr = p.communicate(timeout=60)
    assert p.returncode == 0, stderr
    assert f"interrupted; to go on: --resume {out}" in stdout and "test" not in stderr
    steps = json.loads((out / "result.json").read_text())["steps"]
    again = weft(*command[1:], "--resume", out, "--steps", steps + 3, "--no-compare", "--json")
    assert again.returncode == 0 and json.loads(again.stdout)["steps"] == 3, again.stderr
    kept = weft("train", "--resume", out, "--steps", steps + 5, "--no-compare")  # in its folder, unasked
    assert kept.returncode == 0 and json.loads((out / "result.json").read_text())["step"] == steps + 5, kept.stderr
    elsewhere = weft("train", "--resume", out / "checkpoint.safetensors", "--steps", steps + 6, "--no-compare", "--no-eval")
    assert elsewhere.returncode == 0 and "not kept" in elsewhere.stderr
    empty = weft(*command[1:], "--resume", tmp_path)
    assert empty.returncode == 1 and "checkpoint.safetensors" in empty.stderr


def test_a_step_without_data(tmp_path):
    """The program is made of shapes: no file is asked for."""
    r = weft("train", "gpt2", "--size", 1, "--length", 16, "--batch", 2, "--dump-step", tmp_path / "step.mlir")
    assert r.returncode == 0, r.stderr
    assert "tensor<2x16xi32>" in (tmp_path / "step.mlir").read_text()


def test_a_checkpoint_tells_its_run(tmp_path):
    """Everything that is needed to use it or to go on: and what goes on may not be another run."""
    out = tmp_path / "run"
    r = weft("train", "mlp", "--size", 16, "--data", "synthetic", "--batch", 64, "--steps", 3, "--no-compare", "--out", out, "--seed", 5,
             "--optimizer", "nesterov", "--lr", 0.125, "--momentum", 0.75)
    assert r.returncode == 0, r.stderr
    from safetensors import safe_open
    with safe_open(out / "checkpoint.safetensors", "np") as f:
        m = f.metadata()
    want = {"model": "mlp", "size": "16", "optimizer": "nesterov", "lr": "0.125", "momentum": "0.75", "seed": "5", "batch": "64", "step": "3",
            "data": "synthetic", "inputs": "images ui8 28x28x1; labels i32 ", "classes": "10", "precision": "f32", "schedule": "const"}
    assert {k: m.get(k) for k in want} == want and m["mean"] == "0.5" and m["weft"]
    again = weft("train", "mlp", "--data", "synthetic", "--steps", 3, "--out", out)
    assert again.returncode == 1 and "holds a run" in again.stderr and "--overwrite" in again.stderr
    go_on = weft("train", "--resume", out, "--steps", 5, "--out", out, "--no-compare", "--json")  # by its own settings
    assert go_on.returncode == 0, go_on.stderr
    result = json.loads(go_on.stdout)
    assert result["steps"] == 2 and result["settings"]["momentum"] == 0.75 and result["settings"]["seed"] == 5
    for flag, value in (("--batch", 32), ("--seed", 6), ("--size", 8), ("--optimizer", "sgd")):
        r = weft("train", "--resume", out, "--steps", 9, flag, value)
        assert r.returncode == 1 and f"{flag} " in r.stderr and "not " in r.stderr, r.stderr
    r = weft("train", "mnist", "--data", "synthetic", "--resume", out, "--steps", 9)
    assert r.returncode == 1 and "model 'mlp'" in r.stderr
    fresh = weft("train", "mlp", "--size", 16, "--data", "synthetic", "--batch", 32, "--steps", 1, "--no-compare", "--init", out, "--out",
                 tmp_path / "other")
    assert fresh.returncode == 0, fresh.stderr
    over = weft("train", "mlp", "--size", 16, "--data", "synthetic", "--steps", 1, "--no-compare", "--out", out, "--overwrite")
    assert over.returncode == 0, over.stderr
    assert len(list(out.glob("events*"))) == 1


def test_sigterm_saves(tmp_path):
    """As Ctrl-C, but the caller sees that it did not come to its end."""
    out = tmp_path / "run"
    command = [BUILD / "weft", "train", "mlp", "--size", 64, "--data", "synthetic", "--batch", 64, "--out", out, "--epochs", 1000]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
        while "step 1/" not in p.stderr.readline():
            pass
        p.send_signal(signal.SIGTERM)
        stdout, stderr = p.communicate(timeout=60)
    assert p.returncode == 143 and "interrupted" in stdout, stderr
    assert (out / "checkpoint.safetensors").exists()


SMALL = ["--data", "synthetic", "--steps", 1]


@pytest.mark.parametrize("args, say", [
    (["mnist", "--decay", 0.1], "optimizer adam does not read --decay"), (["mlp", "--dropout", 0.1], "'mlp' does not read --dropout"),
    (["mnist", "--length", 5], "'mnist' does not read --length"), (["mnist", "--bpe", "x"], "does not read --tokenizer"),
    (["mnist", "--no-augment"], "does not read --no-augment"), (["mnist", "--size", 3], "does not read --size"),
    (["mnist", "--label-smoothing", 2], "below 1, not '2'"), (["mnist", "--dropout", 1], "below 1"), (["mnist", "--lr", -1], "at least 0"),
    (["mnist", "--momentum", 0.5], "does not read --momentum"), (["mnist", "--epochs", 2], "--steps and --epochs"),
    (["mnist", "--schedule-steps", 5], "constant rate"), (["mnist", "--optimizer", "adamm"], "is one of sgd"),
    (["mnist", "--batch", 6, "--accumulate", 4], "does not divide into 4 parts")])
def test_senseless_flags_are_refused(args, say):
    r = weft("train", *args, *SMALL)
    assert r.returncode in (1, 2) and say in r.stderr, r.stderr


@pytest.mark.parametrize("args, say", [
    (["train", "nothing"], "models:"), (["train", "mnist", "--batch", "x"], "--batch wants a whole number"),
    (["train", "mnist", "--data", "idx:/nowhere"], "train-images"),
    (["train", "gpt2", "--data", "synthetic", "--length", 0], "--length wants a whole number"),
    (["train", "mnist", "--data", "synthetic", "--batch", 100000], "more than"),
    (["train", "mnist", "--data", "synthetic", "--plugin", "/nowhere.so"], "/nowhere.so")])
def test_errors_say_what_to_do(args, say):
    r = weft(*args)
    assert r.returncode in (1, 2) and say in r.stderr, r.stderr


def test_a_chip_of_several_devices(tmp_path):
    """All of them train, unless told otherwise; a step's time is the chip's own, wall time stands beside it."""
    args = ["train", "mlp", "--size", 16, "--data", "synthetic", "--batch", 64, "--steps", 3, "--no-eval", "--no-compare", "--device", "tpu-v2-8"]
    def result(*more):
        r = weft(*args, *more, "--json")
        assert r.returncode == 0, r.stderr
        return json.loads(r.stdout), r.stderr
    all_of_them, said = result()
    assert all_of_them["replicas"] == 8 and all_of_them["batch"] == 64 and "8 devices" in said
    one, said = result("--replicas", 1)
    assert one["replicas"] == 1 and "1 of its 8 devices" in said and "--replicas 8" in said
    again, _ = result("--replicas", 1)
    assert one["step_s"] == again["step_s"] != one["step_wall_s"] and one["step_s"] < 1e-3
    r = weft(*args, "--batch", 100)
    assert r.returncode == 2 and "--batch 104" in r.stderr
    r = weft("train", "mlp", "--size", 16, "--data", "synthetic", "--batch", 2, "--steps", 1, "--no-eval")
    assert "tpu-v2-8 computes 8 examples: 2 do not divide over 8 devices" in r.stdout


def test_a_log_for_tools_and_what_a_chip_costs(tmp_path):
    log = tmp_path / "log.jsonl"
    r = weft("train", "mlp", "--size", 16, "--data", "synthetic", "--batch", 64, "--steps", 4, "--no-compare", "--log", log, "--device", "tpu-v2", "--json")
    assert r.returncode == 0, r.stderr
    lines = [json.loads(v) for v in log.read_text().splitlines()]
    assert [v["step"] for v in lines if v["kind"] == "train"] == [1, 2, 3, 4] and lines[-1]["kind"] == "test"
    last, result = lines[3], json.loads(r.stdout)
    assert last["step_s"] == pytest.approx(result["step_s"], rel=0.05) and 0 < last["mfu"] < 1
    assert last["energy_j"] == pytest.approx(4 * lines[0]["energy_j"]) and last["usd"] > 0 and last["loss"] == pytest.approx(result["train_loss"])
    assert "MFU" in r.stderr and "chip " in r.stderr
