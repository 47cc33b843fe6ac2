"""weft move: rules that follow from the batch, on both sides of a move; the flags that it prints are taken by weft train."""
import re
import shlex

import pytest

from conftest import weft


def moved(*args):
    r = weft("move", *args)
    assert r.returncode == 0, r.stderr
    rows = {m[1].strip(): (m[2], m[3]) for m in re.finditer(r"^  (.{26}) +(\S+(?: \S+)?) +(\S+(?: \S+)?)$", r.stdout, re.M)}
    flags = dict(re.findall(r"--([\w-]+) (\S+)", r.stdout.split("There\n")[1]))
    return r.stdout, rows, flags


def test_the_same_batch_is_the_same_run():
    text, rows, flags = moved("davidnet", "--from", "T4", "--to", "tpu-v2-8")
    assert rows["devices"] == ("1", "8") and rows["batch, all devices"] == ("512", "512") and rows["batch of a device"] == ("512", "64")
    assert flags["lr"] == "0.4" and flags["decay"] == "0.0005" and flags["warmup"] == "490" and flags["replicas"] == "8"
    assert "of 64 instead of\n  512" in text and flags["precision"] == "bf16"


@pytest.mark.parametrize("model, rate", [("davidnet", 1.6), ("gpt2", 0.0012)])
def test_four_times_the_batch(model, rate):
    first = 512 if model == "davidnet" else 8
    _, rows, flags = moved(model, "--from", "A100-40GB", "--to", "tpu-v3-8", "--batch", 4 * first)
    assert float(flags["lr"]) == pytest.approx(rate) and float(flags["warmup"]) == pytest.approx((490 if model == "davidnet" else 100) / 4, abs=1)


def test_a_run_keeps_its_settings(tmp_path):
    """What the run was given and a move does not change is among the flags: the run there is the same network on the same data."""
    (tmp_path / "my text.txt").write_text("to be or not to be " * 400)
    run = tmp_path / "run"
    r = weft("train", "gpt2", "--size", 1, "--length", 16, "--data", f"text:{tmp_path / 'my text.txt'}", "--batch", 8, "--steps", 4, "--seed", 3,
             "--clip", 0.5, "--no-compare", "--no-eval", "--out", run)
    assert r.returncode == 0, r.stderr
    r = weft("move", run, "--from", "T4", "--to", "tpu-v3-8")
    assert r.returncode == 0, r.stderr
    command = shlex.split(r.stdout.split("There\n")[1])
    flags = dict(zip(command[3::2], command[4::2]))
    assert command[2] == "gpt2" and flags["--data"] == f"text:{tmp_path / 'my text.txt'}"
    assert (flags["--size"], flags["--length"], flags["--steps"], flags["--seed"], flags["--clip"]) == ("1", "16", "4", "3", "0.5")
    r = weft(*command[1:], "--dump-step", tmp_path / "x.mlir")
    assert r.returncode == 0, r.stderr
    assert "neither a run folder nor a model" in weft("move", tmp_path / "none", "--from", "T4", "--to", "T4").stderr


def test_the_flags_train(tmp_path):
    text, _, _ = moved("mnist", "--from", "tpu-v2-8", "--to", "T4")
    command = text.split("There\n")[1].split()
    assert command[:2] == ["weft", "train"]
    r = weft(*command[1:], "--data", "synthetic", "--dump-step", tmp_path / "x.mlir")
    assert r.returncode == 0, r.stderr
    r = weft("move", "mnist", "--from", "T4", "--to", "nothing")
    assert r.returncode == 1 and "nothing" in r.stderr
    assert weft("move", "mnist", "--from", "T4").returncode == 2


def test_from_this_cpu():
    """What was trained here moves to a chip; time and memory are of chips alone."""
    text, rows, flags = moved("davidnet", "--from", "cpu", "--to", "tpu-v3-8")
    assert rows["devices"] == ("1", "8") and rows["batch of a device"] == ("512", "64") and rows["fits"] == ("-", "yes")
    assert flags["precision"] == "bf16" and "The input must deliver" not in text
    assert moved("davidnet", "--from", "cpu:4", "--to", "T4")[1]["devices"] == ("4", "1")
    r = weft("move", "davidnet", "--from", "T4", "--to", "cpu")
    assert r.returncode == 1 and "weft train --device cpu" in r.stderr
