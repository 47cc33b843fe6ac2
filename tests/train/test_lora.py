"""Fine-tuning by LoRA: what was there stays, what is learnt beside it is part of the network and of its export."""
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
