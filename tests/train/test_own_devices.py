"""Train steps of one's own over several devices: a step of one device that is spread by its batch, and steps that JAX sharded. The numbers
are those of one device."""
import json
import os
import shutil
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from jax import export
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

from conftest import BUILD, weft

RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(64, 16)).astype(np.float32), RNG.integers(0, 4, 64).astype(np.int32)
PARAMS = {"a": RNG.normal(size=(16, 32)).astype("f") / 4, "b": RNG.normal(size=(32, 4)).astype("f") / 4}


def step(params, slots, key, x, y):
    """Momentum, dropout, the batch's own mean and deviation: what parts of a batch know of each other."""
    key, sub = jax.random.split(key)

    def loss(p):
        h = x @ p["a"]
        h = (h - h.mean(0)) / (h.std(0) + 1e-3)
        z = jnp.tanh(h) * jax.random.bernoulli(sub, 0.9, h.shape) @ p["b"]
        return jnp.mean(jax.nn.logsumexp(z, -1) - jnp.take_along_axis(z, y[:, None], -1)[:, 0])
    value, g = jax.value_and_grad(loss)(params)
    slots = jax.tree.map(lambda m, d: 0.9 * m + d, slots, g)
    return jax.tree.map(lambda p, m: p - 0.05 * m, params, slots), slots, key, {"loss": value}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    at = tmp_path_factory.mktemp("devices")
    args = PARAMS, jax.tree.map(np.zeros_like, PARAMS), np.array([0, 7], np.uint32), X[:16], Y[:16]
    (at / "s.mlirbc").write_bytes(export.export(jax.jit(step, donate_argnums=(0, 1)))(*args).mlir_module_serialized)
    mesh = jax.sharding.AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def at_(*axes):
        return NamedSharding(mesh, P(*axes))
    params = {"a": at_(None, "model"), "b": at_("model", None)}
    cuts = params, params, at_(), at_("data"), at_("data")
    shaped = jax.tree.map(lambda v, s: jax.ShapeDtypeStruct(v.shape, v.dtype, sharding=s), args, cuts)
    exported = export.export(jax.jit(step, donate_argnums=(0, 1), out_shardings=(params, params, at_(), None)))(*shaped)
    (at / "sharded.mlirbc").write_bytes(exported.mlir_module_serialized)

    def evaluate(params, x, y):
        return {"loss": jnp.mean((x @ params["a"] @ params["b"]) ** 2) + 0.0 * jnp.sum(y)}
    (at / "e.mlir").write_text(jax.jit(evaluate, keep_unused=True).lower(PARAMS, X[:20], Y[:20]).as_text(debug_info=True))
    np.savez(at / "d.npz", x_train=X, y_train=Y, x_test=X[:40], y_test=Y[:40])
    np.savez(at / "init.npz", **{f"params.{k}": v for k, v in PARAMS.items()})
    return at


def train(place, program, out, *flags):
    r = weft("train", place / program, "--data", f"npz:{place / 'd.npz'}", "--init", place / "init.npz", "--steps", 8, "--eval-program",
             place / "e.mlir", "--out", out, "--json", *flags)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout), safetensors.numpy.load_file(out / "checkpoint.safetensors"), r.stderr


@pytest.mark.parametrize("program, device", [("s.mlirbc", "cpu:8"), ("s.mlirbc", "tpu-v3-8"), ("sharded.mlirbc", "cpu:8"), ("sharded.mlirbc", "tpu-v3-8")])
def test_as_one_device(program, device, place, tmp_path):
    chip = device != "cpu:8"  # its products are of bfloat16
    one, want, _ = train(place, "s.mlirbc", tmp_path / "one", "--no-compare", *(["--device", device, "--replicas", 1] if chip else []))
    assert one["replicas"] == 1
    flags = ["--device", device] if chip else ["--replicas", 8]
    many, got, said = train(place, program, tmp_path / "many", *flags)
    assert many["replicas"] == 8 and many["batch"] == 16 and "8 devices" in said
    assert many["train_loss"] == pytest.approx(one["train_loss"], rel=1e-4) and many["test_loss"] == pytest.approx(one["test_loss"], rel=1e-4)
    assert set(got) == set(want)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-5, err_msg=name)
    assert not chip or many["step_s"] != one["step_s"]  # its clock is that of a part and of the exchanges


def test_going_on_with_other_devices(place, tmp_path):
    train(place, "sharded.mlirbc", tmp_path / "run", "--device", "cpu:8", "--no-compare")
    more = {}
    for program, device in ((), "cpu:8"), ((place / "s.mlirbc",), "cpu"):
        r = weft("train", *program, "--resume", tmp_path / "run", "--steps", 12, "--device", device, "--no-compare", "--out", tmp_path / device)
        assert r.returncode == 0, r.stderr
        more[device] = safetensors.numpy.load_file(tmp_path / device / "checkpoint.safetensors")
    for a, b in zip(*(m.values() for m in more.values())):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("program, flags, says", [
    ("s.mlirbc", ["--device", "cpu:8", "--replicas", 3], "batch of 16 does not divide"),
    ("s.mlirbc", ["--device", "cpu:4", "--replicas", 8], "--device cpu:8"),
    ("sharded.mlirbc", ["--device", "cpu:8", "--replicas", 4], "written for 8 devices"),
    ("sharded.mlirbc", ["--device", "cpu:4"], "--device cpu:8"),
])
def test_devices_that_are_not_there(program, flags, says, place):
    r = weft("train", place / program, "--data", f"npz:{place / 'd.npz'}", "--zeros", "--steps", 2, *flags)
    assert r.returncode in (1, 2) and says in r.stderr, r.stderr


def test_memory_of_a_part(tmp_path):
    """Weights that are cut take an eighth of a device's memory, a batch that is cut an eighth of the activations."""
    def wide(w, x):
        value, g = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
        return w - g, {"loss": value}
    w, x = jax.ShapeDtypeStruct((512, 4096), "f"), jax.ShapeDtypeStruct((1024, 512), "f")
    (tmp_path / "s.mlirbc").write_bytes(export.export(jax.jit(wide, donate_argnums=0))(w, x).mlir_module_serialized)
    mesh = jax.sharding.AbstractMesh((8,), ("all",), axis_types=(AxisType.Auto,))
    cut = [jax.ShapeDtypeStruct(v.shape, v.dtype, sharding=NamedSharding(mesh, P(*s))) for v, s in ((w, (None, "all")), (x, ()))]
    (tmp_path / "c.mlirbc").write_bytes(export.export(jax.jit(wide, donate_argnums=0))(*cut).mlir_module_serialized)
    peak = {}
    for name, flags in (("s", ["--replicas", 1]), ("s", []), ("c", [])):
        r = weft("train", tmp_path / f"{name}.mlirbc", "--data", "synthetic", "--steps", 1, "--device", "tpu-v3-8", "--no-compare", "--json", *flags)
        assert r.returncode == 0, r.stderr
        peak[name, bool(flags)] = json.loads(r.stdout)["peak_bytes"]
    one, batch, weights = peak["s", True], peak["s", False], peak["c", False]
    assert one > 16 << 20 and batch < 0.85 * one and weights < 0.4 * one, peak


@pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun here (tools/setup.sh jobs)")
def test_several_processes(place, tmp_path):
    """A step of one device over the devices of two processes: the numbers of one; a step with shardings of its own is refused by name."""
    _, want, _ = train(place, "s.mlirbc", tmp_path / "one", "--no-compare", "--replicas", 4)
    mpi = ["mpirun", "--oversubscribe", "-np", "2", BUILD / "weft"]
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    words = ["--data", f"npz:{place / 'd.npz'}", "--init", place / "init.npz", "--steps", "8", "--eval-program", place / "e.mlir", "--no-compare"]

    def run(program, *flags):
        return subprocess.run([*mpi, "train", place / program, *words, *flags], capture_output=True, text=True, env=env, timeout=300)
    r = run("s.mlirbc", "--replicas", "4", "--out", tmp_path / "two", "--json")
    assert r.returncode == 0, r.stderr
    assert json.loads(r.stdout)["replicas"] == 4 and r.stderr.count("state: ") == 1, "process 0 alone speaks"
    got = safetensors.numpy.load_file(tmp_path / "two" / "checkpoint.safetensors")
    assert set(got) == set(want)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-5, err_msg=name)
    r = subprocess.run([*mpi, "train", "--resume", tmp_path / "two", "--steps", "10", "--out", tmp_path / "more", "--no-compare",
                        "--data", f"npz:{place / 'd.npz'}"], capture_output=True, text=True, env=env, timeout=300)
    assert r.returncode == 0, r.stderr
    r = run("sharded.mlirbc", "--out", tmp_path / "no")
    assert r.returncode and "with shardings of its own runs in one process" in r.stderr
