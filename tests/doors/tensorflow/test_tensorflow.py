"""TensorFlow programs on weft against TensorFlow itself on this CPU."""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from conftest import BUILD, weft  # noqa: E402

HERE = pathlib.Path(__file__).parent


def run(*args, device=None, timeout=900, **env):
    """Runs a Python program in this environment; returns what it printed last, as JSON. device: WEFT_DEVICE; None: TensorFlow itself."""
    full = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "KERAS_", "JAX_"))}
    full.update(TF_CPP_MIN_LOG_LEVEL="3", **env)
    if device:
        full.update(WEFT_DEVICE=device, WEFT_PLUGIN=str(BUILD / "libpjrt_weft.so"))
    r = subprocess.run([sys.executable, *map(str, args)], env=full, capture_output=True, text=True, timeout=timeout, cwd=HERE)
    assert r.returncode == 0, r.stderr[-4000:]
    return json.loads(r.stdout.splitlines()[-1])


def beside(*programs):
    """What functions return, called at the same time: a program of TensorFlow's is mostly one thread of Python."""
    with concurrent.futures.ThreadPoolExecutor(len(programs)) as pool:
        return [made.result() for made in [pool.submit(program) for program in programs]]


def close(got, want, tolerance):
    assert got.keys() == want.keys()
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=tolerance, atol=tolerance, err_msg=name)


def test_seed():
    """As it is written: the hook of an installed package sees WEFT_DEVICE. On the virtual TPU with its precision. One replica of TensorFlow's own
    computes what eight do that divide its batches evenly."""
    want, *got = beside(lambda: run("truth.py", "seed.py", 1), lambda: run("seed.py", device="cpu:8"), lambda: run("seed.py", device="tpu-v3-8"))
    want = {k: v for k, v in want.items() if k not in ("cores", "replicas")}
    for has, tolerance in zip(got, (1e-5, 2e-2), strict=True):
        assert (has.pop("cores"), has.pop("replicas")) == (8, 8)
        close(has, want, tolerance)


# ---- cases.py: two replicas of weft's against two of TensorFlow's MirroredStrategy ---------------------------------------------

CASES = re.findall(r"^@case\ndef (\w+)", (HERE / "cases.py").read_text(), re.M)
NARROW = {"mixed_bfloat16": 2e-2, "mixed_float16": 5e-3}  # in numbers that have few digits, sums in another order part sooner


def values(path):
    cases = {}
    with np.load(path) as file:
        for key in file.files:
            name, _, what = key.partition("/")
            cases.setdefault(name, {})[what] = file[key]
    return cases


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """What TensorFlow makes of all cases, and what weft makes of them."""
    truth, ours = (tmp_path_factory.mktemp(name) / "out.npz" for name in ("truth", "weft"))
    beside(lambda: run("truth.py", "cases.py", 2, truth), lambda: run("cases.py", ours, device="cpu:2"))
    return values(truth), values(ours)


@pytest.mark.parametrize("name", CASES)
def test_case(both, name):
    wanted, computed = both
    for cases in both:
        assert "error" not in cases[name], str(cases[name]["error"])
    close(computed[name], wanted[name], NARROW.get(name, 2e-5))


# ---- what a chip has besides its numbers ---------------------------------------------------------------------------------------


def busy(profile):
    """Seconds of a step in which the device does something."""
    return sum(profile["mean"]["parts"][part] for part in ("compute", "vector", "memory", "overhead"))


@pytest.mark.parametrize("device, name, gib", [("A100", "/device:GPU:0", 40), ("tpu-v3-8", "/device:TPU:7", 16)])
def test_profile(tmp_path, device, name, gib):
    """tf.profiler's recording has the chip's own time; the devices are named and have the chip's memory."""
    got = run("profiled.py", tmp_path, device=device)
    assert got["devices"][-1] == name and got["loss"][0] < 2.5
    assert 0.9 * gib * 2**30 < got["limit"] <= gib * 2**30 and 256 * 512 * 4 < got["current"] < 2**26
    said = json.loads(weft("profile", tmp_path, "--json").stdout)
    assert 1e-6 < busy(said) < 1e-3 and any("dot" in k["name"] for k in said["kernels"])


def test_phantom(tmp_path):
    """No numbers are computed, the time is the same."""
    got = run("profiled.py", tmp_path, device="A100", WEFT_PHANTOM="1")
    assert got["loss"] == [0.0]
    assert 1e-6 < busy(json.loads(weft("profile", tmp_path, "--json").stdout)) < 1e-3


def test_lines_of_the_program():
    """What does not fit and what cannot be compiled are named with the line that asked for it, not with TensorFlow's or Keras's."""
    program = (HERE / "large.py").read_text().splitlines()
    line = {what: 1 + next(i for i, text in enumerate(program) if what in text) for what in ("self.up(x)", "as_string", "boolean_mask")}
    got = run("large.py", device="tpu-v5e", WEFT_PHANTOM="1")
    assert re.search(rf"GiB .*large\.py:{line['self.up(x)']} \(", got["said"]), got["said"]
    assert f"large.py:{line['as_string']}" in got["refused"], got["refused"]
    assert re.search(rf"shape .* at .*large\.py:{line['boolean_mask']} depends on values", got["selected"]), got["selected"]


def test_recurrent_layers_on_gpus():
    """Keras's LSTM and GRU ask for cuDNN where there are GPUs."""
    got = run("-c", """
import json
import keras
import numpy as np
import tensorflow as tf
with tf.distribute.MirroredStrategy().scope():
    model = keras.Sequential([keras.layers.Input((5, 3)), keras.layers.LSTM(4, return_sequences=True), keras.layers.Bidirectional(keras.layers.GRU(4)),
                              keras.layers.Dense(2)])
    model.compile("adam", "mse")
print(json.dumps(model.fit(np.ones((8, 5, 3), "f"), np.ones((8, 2), "f"), batch_size=4, verbose=0).history["loss"]))""", device="A100:2")
    assert 0 < got[0] < 10


def test_traced_once():
    """A step is traced once, also where its function is made in each round of a loop."""
    assert run("-c", """
import json
import tensorflow as tf
strategy = tf.distribute.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver("local"))
with strategy.scope():
    v = tf.Variable(1.0)
traced = [0, 0]
for i in range(3):
    def step(x):
        traced[0] += 1
        return x * v
    strategy.run(step, args=(tf.constant(2.0),))
@tf.function
def train(x):
    def step(x):
        traced[1] += 1
        return v.assign_add(x)
    return strategy.reduce("SUM", strategy.run(step, args=(x,)), axis=None)
for i in range(3):
    train(tf.constant(1.0))
print(json.dumps(traced))""", device="cpu:2") == [1, 1]


def test_estimate_of_a_script():
    """`weft estimate train.py` takes the training step of the script, for the devices of WEFT_DEVICE."""
    env = {"WEFT_PYTHON": sys.executable, "WEFT_PLUGIN": str(BUILD / "libpjrt_weft.so"), "WEFT_DEVICE": "tpu-v3-8"}
    r = subprocess.run([BUILD / "weft", "estimate", HERE / "seed.py", "--chip", "tpu-v3-8", "--json"], env=dict(os.environ, **env),
                       capture_output=True, text=True, timeout=600)
    assert r.returncode == 0, r.stderr[-2000:]
    got = json.loads(r.stdout)
    assert any("/seed.py:" in str(kernel) for kernel in got["kernels"]), got["kernels"]


def test_calls_are_told_apart_by_strategies_that_are_gone():
    """A strategy made after another was dropped may get its number (id): calls of the one must not pass for calls of the other."""
    assert run("-c", """
import gc, json
import tensorflow as tf
import weft.tf.function as function
keys = set()
for _ in range(20):
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        keys.add(function._key((tf.constant(1.0),), {}))
    gc.collect()
print(json.dumps(len(keys)))""", device="cpu") == 20
