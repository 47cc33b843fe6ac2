"""Training in 8 bits: what the program says, its gradients against the same in numpy with ml_dtypes, the loss beside bf16's."""
import json
import re

import ml_dtypes
import numpy as np
import pytest

from conftest import weft

TEXT = "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer. " * 60


def train(*args, **kw):
    r = weft("train", *args, "--no-compare", "--json", **kw)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout), r.stderr


def quantised(x, t):
    most = np.float32({ml_dtypes.float8_e4m3fn: 448, ml_dtypes.float8_e5m2: 57344}[t])
    scale = np.abs(x).max() / most
    return np.clip(x / scale, -most, most).astype(t).astype(np.float32) * scale


def half(x):
    return np.asarray(x).astype(ml_dtypes.bfloat16).astype(np.float32)


def step_by_hand(w, x, labels):
    """One step of SGD with rate 1 of three dense layers, forward and backward by the definition of f8.c."""
    e4, e5 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
    acts, h = [], half(x)
    names = ["dense1", "dense2", "dense3"]
    for k in names:
        acts.append(h)
        h = half(half(quantised(h, e4) @ quantised(half(w[k + "/kernel"]), e4)) + half(w[k + "/bias"]))
        h = np.maximum(h, 0) if k != "dense3" else h
        acts.append(h)
    p = np.exp(h - h.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    ct = half((p - np.eye(p.shape[1])[labels]) / len(x))
    new = {}
    for i, k in reversed(list(enumerate(names))):
        into, q = acts[2 * i], quantised(ct, e5)
        new[k + "/kernel"] = w[k + "/kernel"] - quantised(into, e4).T @ q
        new[k + "/bias"] = w[k + "/bias"] - ct.sum(0)
        ct = half(q @ quantised(half(w[k + "/kernel"]), e4).T) * (into > 0) if i else None
    return new


def test_one_step(tmp_path):
    from safetensors.numpy import load_file, save_file
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 256, (40, 8, 8)).astype(np.uint8), rng.integers(0, 4, 40)
    np.savez(tmp_path / "d.npz", x_train=x[:32], y_train=y[:32].astype(np.uint8), x_test=x[32:], y_test=y[32:].astype(np.uint8))
    args = ["mlp", "--size", 16, "--data", f"npz:{tmp_path / 'd.npz'}", "--batch", 32, "--in-order", "--optimizer", "sgd", "--lr", 1, "--no-eval"]
    train(*args, "--steps", 1, "--lr", 0, "--out", tmp_path / "first")
    w = load_file(tmp_path / "first" / "checkpoint.safetensors")
    train(*args, "--steps", 1, "--precision", "f8", "--init", tmp_path / "first", "--out", tmp_path / "f8")
    got = load_file(tmp_path / "f8" / "checkpoint.safetensors")
    mean, std = (x[:32] / 255).mean(), (x[:32] / 255).std()
    want = step_by_hand(w, ((x[:32] / 255 - mean) / std).reshape(32, -1).astype(np.float32), y[:32])
    for k, v in want.items():
        moved = np.abs(v - w[k]).max()
        assert moved > 0
        # a value at the middle of two in 8 bits may go either way
        assert np.abs(got[k] - v).mean() < 0.02 * moved and np.abs(got[k] - v).max() < 0.25 * moved, k


def test_the_program(tmp_path):
    r = weft("train", "gpt2", "--size", 1, "--length", 16, "--batch", 2, "--precision", "f8", "--data", "synthetic", "--dump-step", tmp_path / "s.mlir")
    assert r.returncode == 0, r.stderr
    text = (tmp_path / "s.mlir").read_text()
    forms = re.findall(r"dot_general .*?: \(tensor<[0-9x]*x(\w+)>, tensor<[0-9x]*x(\w+)>\) -> tensor<[0-9x]*x(\w+)>", text)
    assert forms.count(("f8E4M3FN", "f8E4M3FN", "f32")) == 4 and forms.count(("f8E5M2", "f8E4M3FN", "f32")) == 8
    assert "weft.f8" not in text


@pytest.mark.parametrize("extra", [[], ["--remat"], ["--accumulate", 2]])
def test_learns_as_bf16(extra, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    args = ["gpt2", "--size", 2, "--length", 24, "--data", f"text:{tmp_path / 'text.txt'}", "--batch", 8, "--steps", 60, "--lr", 0.003, "--warmup", 5,
            "--out", tmp_path / "run", "--overwrite", *extra]
    wide = train(*args, "--precision", "bf16")[0]["test_loss"]
    narrow, said = train(*args, "--precision", "f8")
    assert narrow["test_loss"] == pytest.approx(wide, abs=0.25) and wide < 1, (narrow["test_loss"], wide)
    assert narrow["settings"]["precision"] == "f8" and "no products of 8 bits on cpu" in said
    r = weft("eval", tmp_path / "run", "--json")
    assert r.returncode == 0 and json.loads(r.stdout)["loss"] == pytest.approx(narrow["test_loss"], rel=1e-4)


@pytest.mark.parametrize("model, extra, e4, e5", [
    ("mnist", [], 7, 4),  # two convolutions and two dense layers; no gradient of the pictures
    ("gpt2", ["--size", 1, "--length", 16, "--f8-attention"], 6, 12),
    ("moe", ["--size", 1, "--length", 16], 7, 14),  # not the router
    ("gru", ["--size", 32, "--length", 8], 3, 6)])
def test_what_is_narrow(model, extra, e4, e5, tmp_path):
    r = weft("train", model, *extra, "--batch", 2, "--precision", "f8", "--data", "synthetic", "--dump-step", tmp_path / "s.mlir")
    assert r.returncode == 0, r.stderr
    forms = re.findall(r"(?:dot_general|convolution).*?: \(tensor<[0-9x]*x(\w+)>, tensor<[0-9x]*x(\w+)>\) -> tensor<[0-9x]*x(\w+)>", (tmp_path / "s.mlir").read_text())
    assert (forms.count(("f8E4M3FN", "f8E4M3FN", "f32")), forms.count(("f8E5M2", "f8E4M3FN", "f32"))) == (e4, e5)


def test_attention_asks_for_f8(tmp_path):
    r = weft("train", "gpt2", "--f8-attention", "--data", "synthetic", "--dump-step", tmp_path / "s.mlir")
    assert r.returncode == 1 and "--f8-attention without --precision f8" in r.stderr
    r = weft("train", "mnist", "--precision", "f8", "--f8-attention", "--data", "synthetic", "--dump-step", tmp_path / "s.mlir")
    assert r.returncode == 2 and "model 'mnist' does not read --f8-attention" in r.stderr


def test_pictures_learn_as_bf16(tmp_path):
    """Convolutions, forward and both gradients."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 600).astype(np.uint8)
    x = rng.integers(0, 90, (600, 28, 28)).astype(np.uint8)
    for i, k in enumerate(y):
        x[i, 6 + 4 * k: 10 + 4 * k, 4:24] += 120
    np.savez(tmp_path / "d.npz", x_train=x[:512], y_train=y[:512], x_test=x[512:], y_test=y[512:])
    args = ["mnist", "--data", f"npz:{tmp_path / 'd.npz'}", "--batch", 64, "--steps", 30, "--seed", 2]
    wide, narrow = (train(*args, "--precision", p)[0] for p in ("bf16", "f8"))
    assert wide["test_accuracy"] > 0.95 and narrow["test_accuracy"] > 0.95, (wide, narrow)
    assert narrow["test_loss"] == pytest.approx(wide["test_loss"], abs=0.1)


def test_chips_that_have_them(tmp_path):
    """Faster than bf16 where large products are, said where there are none."""
    for precision in ("bf16", "f8"):
        r = weft("train", "mlp", "--size", 8192, "--batch", 8192, "--data", "synthetic", "--precision", precision, "--dump-step", tmp_path / f"{precision}.mlir")
        assert r.returncode == 0, r.stderr
    for chip, gain in (("H100", 1.1), ("MI300X", 1.1)):
        wide, narrow = (json.loads(weft("estimate", tmp_path / f"{p}.mlir", "--chip", chip, "--json").stdout)["time_s"] for p in ("bf16", "f8"))
        assert wide > gain * narrow, chip
    small = ["gpt2", "--size", 1, "--length", 16, "--batch", 2, "--steps", 1, "--data", "synthetic", "--no-eval", "--precision", "f8"]
    for chip, has in (("H100", True), ("tpu7x", True), ("MI300X", True), ("T4", False), ("A100", False)):
        said = train(*small, "--device", chip, "--replicas", 1, env={"WEFT_PHANTOM": "1"})[1]
        assert ("no products of 8 bits" in said) is not has, (chip, said)
