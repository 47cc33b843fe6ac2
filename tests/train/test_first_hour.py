"""What somebody who is new gets wrong, and what is said of it."""
import json
import os
import subprocess

import numpy as np
import pytest

from conftest import BUILD, weft

TEXT = "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer. " * 60
QUICK = ["--no-compare", "--no-eval", "--steps", 2, "--batch", 4]


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    (folder / "text.txt").write_text(TEXT)
    r = weft("train", "gpt2", "--size", 1, "--length", 16, "--data", f"text:{folder / 'text.txt'}", *QUICK, "--out", folder / "runs" / "a")
    assert r.returncode == 0, r.stderr
    return folder


def test_data_sets_that_are_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text(TEXT)
    (tmp_path / "cats" / "a").mkdir(parents=True)
    (tmp_path / "four").mkdir()
    (tmp_path / "four" / "train-labels-idx1-ubyte.gz").write_bytes(b"")
    for spec, meant in (("mnits", "mnist"), ("cifer10:x", "cifar10"), ("not-there.txt", "text:not-there.txt"), ("a/b.csv", "csv:a/b.csv"), ("notes", "text:notes"),
                        ("cats", "folder:cats"), ("four", "idx:four"), ("x.npz", "npz:x.npz"), ("x.tar", "wds:x.tar")):
        r = weft("train", "mnist", "--data", spec)
        assert r.returncode == 1 and f"did you mean {meant}?" in r.stderr, (spec, r.stderr)
    r = weft("train", "mnist", "--data", "zzzzzzzzzz")
    assert r.returncode == 1 and "fashion-mnist" in r.stderr and "webdataset" in r.stderr


def test_data_of_another_kind_comes_first(writer):
    r = weft("train", "mnist", "--data", f"text:{writer / 'text.txt'}", "--batch", 100000)
    assert r.returncode == 1 and "wants images of at least 8 x 8, 'text:text.txt' has tokens, i32 (64)" in r.stderr, r.stderr
    np.savez(writer / "x.npz", x=np.zeros((9, 8, 8), np.float32), y=np.arange(9) % 2)
    r = weft("train", "mlp", "--data", f"npz:{writer / 'x.npz'}", "--batch", 2)
    assert r.returncode == 1 and "has x, f32 (8, 8)" in r.stderr and "(height, width, channels)" in r.stderr, r.stderr
    r = weft("train", "gpt2", "--data", f"npz:{writer / 'x.npz'}", "--batch", 2)
    assert r.returncode == 1 and "wants text, 'npz:x.npz' has x, f32 (8, 8)" in r.stderr, r.stderr


def test_where_runs_are(writer):
    runs = writer / "runs"
    for where in (runs, runs / "b"):
        for verb in (["eval"], ["generate", "--prompt", "x"], ["train", "gpt2", "--data", f"text:{writer / 'text.txt'}", "--init"], ["train", "--resume"]):
            r = weft(*verb, where)
            assert r.returncode == 1 and f"runs there: {runs / 'a'}" in r.stderr, r.stderr


def test_a_run_without_a_checkpoint(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "events.out.tfevents.1.host.1.weft").touch()
    r = weft("train", "--resume", tmp_path / "run")
    assert r.returncode == 1 and "before its first checkpoint" in r.stderr and "--overwrite" in r.stderr, r.stderr


def test_a_run_is_no_program(writer):
    for args in (["estimate", writer / "runs" / "a", "--chip", "T4"], ["diff", writer / "runs" / "a"]):
        r = weft(*args)
        assert r.returncode == 1 and "not a program" in r.stderr and "weft export" in r.stderr, r.stderr


def test_init_says_what_it_took(writer):
    data, init = ["--data", f"text:{writer / 'text.txt'}", *QUICK], ["--init", writer / "runs" / "a"]
    r = weft("train", "gpt2", *data, *init)  # its shape is taken
    assert r.returncode == 0 and "begins with 16 of 16 tensors" in r.stderr, r.stderr
    shape = ["--size", 1, "--length", 16]
    r = weft("train", "gpt2", *shape, *data, *init)
    assert r.returncode == 0 and "begins with 16 of 16 tensors of --init\n" in r.stderr, r.stderr
    r = weft("train", "gpt2", *shape, *data, *init, "--lora", 2)
    assert r.returncode == 0 and "begins with 16 of 24 tensors of --init; new: h0/qkv/lora_a, h0/qkv/lora_b" in r.stderr and "and 2 more" in r.stderr, r.stderr
    r = weft("train", "gpt2", "--size", 2, "--length", 8, *data, *init)
    assert r.returncode == 1 and "it is a run of gpt2 with --size 1 --length 16" in r.stderr, r.stderr
    from safetensors.numpy import save_file
    save_file({"transformer.wte.weight": np.zeros((2, 2), np.float32)}, writer / "other.safetensors")
    r = weft("train", "gpt2", *data, "--init", writer / "other.safetensors")
    assert r.returncode == 1 and "weft import MODEL FILE" in r.stderr, r.stderr


def test_warm_up_of_short_runs(writer):
    def warmup(*args):
        r = weft("train", "gpt2", "--size", 1, "--length", 16, "--data", f"text:{writer / 'text.txt'}", "--no-compare", "--no-eval", "--batch", 2, "--json", *args)
        assert r.returncode == 0, r.stderr
        return json.loads(r.stdout)["settings"]["warmup"]
    assert warmup("--steps", 450) == 100 and warmup("--steps", 40) == 4 and warmup("--steps", 3) == 0 and warmup("--steps", 20, "--warmup", 15) == 15


def test_text_before_its_figures(writer):
    both = subprocess.run([str(BUILD / "weft"), "generate", str(writer / "runs" / "a"), "--prompt", "To be", "--tokens", "3"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout
    text, figures = both.rstrip(b"\n").rsplit(b"\n", 1)
    assert text.startswith(b"To be") and b"tokens/s" in figures


def test_numbers_that_are_too_large():
    r = weft("train", "mnist", "--batch", "1e9")
    assert r.returncode == 2 and "below 1e+09" in r.stderr
    r = weft("train", "mnist", "--batch", "-1")
    assert r.returncode == 2 and "at least 1, not" in r.stderr


def test_tokens_of_an_example_are_said():
    r = weft("advise", "gpt2", "--chip", "T4")
    assert r.returncode == 0 and "64 tokens each (--length)" in r.stdout, r.stdout


def test_no_room(tmp_path):
    """Said before training, not after it."""
    def mount(*args):
        return subprocess.run(args, capture_output=True).returncode == 0
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() or not mount("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)):
        pytest.skip("no file system of 1 MiB can be made here")
    try:
        r = weft("train", "mnist", "--data", "synthetic", *QUICK, "--out", disk / "run")
    finally:
        mount("umount", str(disk))
    assert r.returncode == 1 and "a checkpoint takes 13.7" in r.stderr and "step 1/2" not in r.stderr, r.stderr


@pytest.mark.parametrize("model", ["gpt2", "bert"])
def test_more_layers_than_a_program_holds(writer, model):
    r = weft("train", model, "--data", f"text:{writer / 'text.txt'}", "--steps", 1, "--size", 9999, "--no-compare")
    assert r.returncode == 1 and "9999 layers" in r.stderr and "at most 512" in r.stderr, r.stderr


def test_a_table_smaller_than_the_usual_batch(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,label\n" + "".join(f"{i},{-i},{i // 4 % 2}\n" for i in range(50)))
    r = weft("train", "mlp", "--size", 8, "--data", f"csv:{tmp_path / 't.csv'}", "--no-compare", "--steps", 2)
    assert r.returncode == 1 and "--batch 32" in r.stderr, r.stderr
    assert weft("train", "mlp", "--size", 8, "--data", f"csv:{tmp_path / 't.csv'}", "--no-compare", "--steps", 2, "--batch", 32).returncode == 0


def test_what_is_kept_is_said(tmp_path):
    """Without --out nothing is: the header says so, and flags that are about the run folder are refused; a profile's folder is made first."""
    train = "train", "mlp", "--size", 8, "--data", "synthetic", "--steps", 1, "--batch", 8, "--no-compare", "--no-eval"
    assert "not kept: --out DIR" in weft(*train).stderr and "not kept" not in weft(*train, "--out", tmp_path / "run").stderr
    for flags in (["--save-every", 1], ["--save-minutes", 1], ["--overwrite"]):
        r = weft(*train, *flags)
        assert r.returncode == 2 and f"{flags[0]} without --out" in r.stderr, r.stderr
    r = weft(*train, "--profile", "/proc/x")
    assert r.returncode == 1 and "cannot make the folder '/proc/x'" in r.stderr and "step 1/1" not in r.stderr, r.stderr
