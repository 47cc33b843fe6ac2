"""Fine-tuning by LoRA: what was there stays, what is learnt beside it is part of the network and of its export."""
import json

import numpy as np

from conftest import weft

TEXT = "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer. " * 60
OTHER = "the slings and arrows of outrageous fortune; " * 100


def test_lora(tmp_path):
    for name, text in (("a", TEXT), ("b", OTHER)):
        (tmp_path / f"{name}.txt").write_text(text)
    common = ["train", "gpt2", "--size", 2, "--length", 16, "--batch", 8, "--no-compare", "--no-eval"]
    r = weft(*common, "--data", f"text:{tmp_path / 'a.txt'}", "--steps", 20, "--out", tmp_path / "first")
    assert r.returncode == 0, r.stderr
    r = weft(*common, "--data", f"text:{tmp_path / 'b.txt'}", "--steps", 30, "--lr", 0.01, "--lora", 4, "--accumulate", 2, "--init", tmp_path / "first",
             "--out", tmp_path / "tuned")
    assert r.returncode == 0, r.stderr
    from safetensors.numpy import load_file
    before, after = (load_file(tmp_path / f"{d}/checkpoint.safetensors") for d in ("first", "tuned"))
    weights = [k for k in before if not k.startswith("opt/") and k not in ("step", "seed")]
    assert all(np.array_equal(before[k], after[k]) for k in weights)
    learnt = [k for k in after if "/lora_" in k and not k.startswith("opt/")]
    assert len(learnt) == 2 * 4 * 2 and all(np.abs(after[k]).max() > 0 for k in learnt)  # A and B of four kernels in two layers
    assert {k for k in after if k.startswith("opt/")} == {f"opt/{s}/{k}" for k in learnt for s in "mv"}
    loss = [float(weft("eval", tmp_path / d, "--data", f"text:{tmp_path / 'b.txt'}").stdout.split("loss ")[1].split(",")[0]) for d in ("first", "tuned")]
    assert loss[1] < loss[0] - 0.3
    r = weft("export", tmp_path / "tuned", "--to", tmp_path / "out")
    assert r.returncode == 0, r.stderr
    merged = load_file(tmp_path / "out/pytorch.safetensors")
    want = before["h1/fc/kernel"] + 2 * after["h1/fc/lora_a"] @ after["h1/fc/lora_b"]
    np.testing.assert_allclose(merged["transformer.h.1.mlp.c_fc.weight"], want, rtol=1e-5, atol=1e-6)
    assert not any("lora" in k for k in merged)
    got = [weft("generate", tmp_path / "tuned", "--prompt", "the sli", "--tokens", 12, "--temperature", 0, *x).stdout for x in ([], ["--no-cache"])]
    assert got[0] == got[1]
    r = weft("train", "mnist", "--data", "synthetic", "--lora", 2, "--steps", 1)
    assert r.returncode == 2 and "does not read --lora" in r.stderr


def test_begins_a_run_without(tmp_path):
    """--init of a run with adapters: added into their kernels where the new run has none, or others."""
    from safetensors.numpy import load_file
    (tmp_path / "a.txt").write_text(TEXT)
    common = ["train", "gpt2", "--size", 1, "--length", 16, "--batch", 4, "--no-compare", "--data", f"text:{tmp_path / 'a.txt'}"]
    r = weft(*common, "--steps", 8, "--lr", 0.05, "--lora", 4, "--out", tmp_path / "tuned")
    assert r.returncode == 0, r.stderr
    old = load_file(tmp_path / "tuned/checkpoint.safetensors")
    want = old["h0/fc/kernel"] + 2 * old["h0/fc/lora_a"] @ old["h0/fc/lora_b"]
    for extra, merged in (([], True), (["--lora", 2], True), (["--lora", 4], False)):
        r = weft(*common, "--steps", 1, "--lr", 0, *extra, "--init", tmp_path / "tuned", "--out", tmp_path / "next", "--overwrite", "--no-eval")
        assert r.returncode == 0 and ("its LoRA adapters added into 4 of them" in r.stderr) is merged, r.stderr
        new = load_file(tmp_path / "next/checkpoint.safetensors")
        if merged:
            np.testing.assert_allclose(new["h0/fc/kernel"], want, rtol=1e-5, atol=1e-6)
        else:
            assert np.array_equal(new["h0/fc/kernel"], old["h0/fc/kernel"]) and np.array_equal(new["h0/fc/lora_b"], old["h0/fc/lora_b"])
        losses = [json.loads(weft("eval", tmp_path / d, "--json").stdout)["loss"] for d in ("tuned", "next")]
        assert abs(losses[0] - losses[1]) < 1e-4, (extra, losses)
