"""`weft advise`: fit, owners, the largest batch; a program asked for another batch; and the wall that the answers predict."""
import json
import re

import pytest

from conftest import weft


def advise(*args, status=(0, 1)):
    p = weft("advise", *args, "--json")
    assert p.returncode in status, p.stderr
    return json.loads(p.stdout)["chips"]


def fits(*args, key="train"):
    return advise(*args)[0][key]["fits"]


def test_the_tutorial_in_one_command():
    t4, v2 = advise("davidnet", "--batch", 512, "--eval-batch", 10000, "--chip", "T4", "--chip", "tpu-v2-8", status=(0,))
    for row in (t4, v2):
        for kind in ("train", "eval"):
            fit = row[kind]
            assert sum(fit["owners"].values()) == pytest.approx(fit["hbm_bytes"], rel=1e-6)
            assert fit["owners"]["parameters"] == pytest.approx(6.57e6 * 4, rel=0.05)
        assert row["train"]["owners"]["kept for later"] > 0.5 * row["train"]["hbm_bytes"]
        assert row["train"]["owners"]["optimizer slots"] == pytest.approx(row["train"]["owners"]["parameters"], rel=0.02)
        assert row["eval"]["owners"]["optimizer slots"] == 0
        assert (row["largest_eval_batch"] > row["largest_eval_batch_slots_resident"] > row["largest_eval_batch_training_held"] > 10000)
    # one layer's convolution and what its normalisation makes of it, in f32, are most of it: 10000 x 32 x 32 x (128 + 128) x 4 bytes
    assert t4["eval"]["hbm_bytes"] == pytest.approx(10.49e9, rel=0.05)
    assert v2["eval"]["hbm_bytes"] < t4["eval"]["hbm_bytes"] / 7
    # the plan fits where a framework without fusion, with everything held, does not
    assert t4["eval"]["fits"] and t4["framework_bytes"] > t4["eval"]["limit_bytes"]


def test_no_workspace_without_convolutions():
    """A convolution's workspace of 4 GiB is not counted for a network of products alone."""
    assert advise("mlp", "--chip", "T4")[0]["framework_bytes"] < 2**30 < 4 * 2**30 < advise("mnist", "--chip", "T4")[0]["framework_bytes"]


@pytest.mark.parametrize("model", ["davidnet", "mnist", "lstm"])
def test_largest_is_the_edge(model):
    """A GPU's plan does not grow evenly: sums over an odd batch are cut otherwise, so that a larger, rounder batch may fit again."""
    row = advise(model, "--chip", "K80")[0]
    train, evaluate = int(row["largest_train_batch"]), int(row["largest_eval_batch"])
    assert fits(model, "--chip", "K80", "--batch", train) and not fits(model, "--chip", "K80", "--batch", int(train * 1.01) + 1)
    assert fits(model, "--chip", "K80", "--eval-batch", evaluate, key="eval")
    assert not fits(model, "--chip", "K80", "--eval-batch", int(evaluate * 1.01) + 1, key="eval")


@pytest.mark.parametrize("model,args", [("mnist", ()), ("mlp", ()), ("davidnet", ()), ("resnet50", ()), ("lstm", ()),
                                        ("gpt2", ("--size", 2)), ("bert", ("--size", 2))])
def test_a_program_with_another_batch(model, args, tmp_path):
    """The step of batch 8 asked for batch 24 takes what the step of batch 24 takes."""
    f = tmp_path / "step.mlir"
    p = weft("train", model, "--data", "synthetic", "--batch", 8, *args, "--dump-step", f)
    assert p.returncode == 0, p.stderr
    for chip in ("T4", "tpu-v3"):
        changed = advise(f, "--batch", 24, "--chip", chip)[0]["train"]
        built = advise(model, *args, "--batch", 24, "--chip", chip)[0]["train"]
        assert changed["batch"] == built["batch"] == 24
        assert changed["hbm_bytes"] == pytest.approx(built["hbm_bytes"], rel=0.002)
        assert changed["time_s"] == pytest.approx(built["time_s"], rel=0.01)


def test_a_program_whose_batch_cannot_change(tmp_path):
    f = tmp_path / "odd.mlir"
    f.write_text("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                 "  %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>\n"
                 "  %0 = stablehlo.add %x, %c : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n")
    assert advise(f, "--chip", "T4")[0]["eval"]["fits"]
    assert "constant" in advise(f, "--chip", "T4", "--batch", 8)[0]["eval"]["error"]


def test_wrong_words():
    p = weft("advise", "davidnett", "--chip", "T4")
    assert p.returncode == 1 and "davidnet," in p.stderr
    p = weft("advise", "davidnet", "--chip", "T44")
    assert p.returncode == 1 and "T44" in p.stderr and "T4" in p.stderr
    assert weft("advise", "davidnet", "--batch", "many").returncode == 2


def test_the_wall_and_the_way_round_it():
    """A run that cannot fit fails before it starts, names owners and the next thing to try; the advice works."""
    run = ("train", "mlp", "--data", "synthetic", "--steps", 1, "--no-compare", "--device", "K80")
    most = int(advise("mlp", "--chip", "K80")[0]["largest_eval_batch"])
    p = weft(*run, "--eval-batch", 2 * most)
    assert p.returncode == 1 and "RESOURCE_EXHAUSTED" in p.stderr
    for word in ("parameters", "input", "should fit", "weft advise"):
        assert word in p.stderr
    smaller = int(re.search(r"hint: batch (\d+) instead of", p.stderr)[1])
    assert 0.9 * most < smaller <= most and fits("mlp", "--chip", "K80", "--eval-batch", smaller, key="eval")


STEP = """func.func public @main(%p: tensor<256x256xf32>, %m: tensor<256x256xf32>, %x: tensor<64x256xf32>) -> (tensor<256x256xf32>, tensor<256x256xf32>) {
  %r = stablehlo.constant dense<0.1> : tensor<256x256xf32>
  %h = stablehlo.dot_general %x, %p, contracting_dims = [1] x [0] : (tensor<64x256xf32>, tensor<256x256xf32>) -> tensor<64x256xf32>
  %t = stablehlo.tanh %h : tensor<64x256xf32>
  %g = stablehlo.dot_general %x, %t, contracting_dims = [0] x [0] : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<256x256xf32>
  %n = stablehlo.add %m, %g : tensor<256x256xf32>
  %s = stablehlo.multiply %r, %n : tensor<256x256xf32>
  %q = stablehlo.subtract %p, %s : tensor<256x256xf32>
  return %q, %n : tensor<256x256xf32>, tensor<256x256xf32>
}
"""


def test_a_step_without_loss_or_donation(tmp_path):
    f = tmp_path / "step.mlir"
    f.write_text(STEP)
    rows = advise(f, "--chip", "tpu-v2", "--chip", "tpu-v5e", "--chip", "T4", status=(0,))
    for row in rows:
        assert row["train"]["batch"] == 64 and "eval" not in row
        assert row["train"]["owners"]["parameters"] == row["train"]["owners"]["optimizer slots"] == 256 * 256 * 4
    p = weft("estimate", f, "--chip", "T4", "--batch", 10 ** 9)  # new state lies beside the old: no batch shrinks it
    smaller = re.search(r"hint: batch (\d+) instead of 1000000000 should fit", p.stderr)[1]
    assert fits(f, "--chip", "T4", "--batch", smaller)


def test_the_largest_that_is_asked_for(tmp_path):
    """A program so small that 2^24 examples fit: nobody asks for more, and the search ends there."""
    f = tmp_path / "step.mlir"
    f.write_text(STEP.replace("256", "8"))
    rows = advise(f, "--chip", "A100-80GB", "--chip", "tpu-v5p")
    assert [r["largest_train_batch"] for r in rows] == [1 << 24, 1 << 24]


def test_a_batch_that_is_not_found(tmp_path):
    f = tmp_path / "twice.mlir"
    f.write_text("func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %0 = stablehlo.add %x, %x : tensor<f32>\n  return %0 : tensor<f32>\n}\n")
    p = weft("advise", f, "--chip", "T4")
    assert "was not found" in p.stdout and "1 example" not in p.stdout
    assert advise(f, "--chip", "T4")[0]["largest_eval_batch"] is None


def test_a_batch_that_does_not_divide():
    p = weft("advise", "mnist", "--chip", "tpu-v3-8", "--batch", 100)
    assert "training step of 104 examples" in p.stdout and "100 do not divide over 8 devices, so 13 on each" in p.stdout


def test_whole_bytes_and_what_prices_are_of():
    rows = advise("mnist", "--chip", "K80", "--chip", "tpu-v2-8")
    for row in rows:
        for fit in (row["train"], row["eval"]):
            assert all(isinstance(v, int) for v in [*fit["owners"].values(), fit["padding_bytes"], fit["limit_bytes"], fit["hbm_bytes"]])
    p = weft("advise", "mnist", "--chip", "K80", "--chip", "A100-80GB")
    prices = p.stdout.split("\nprices\n")[1]
    assert "p2.xlarge" in prices and "A100-80GB" in prices and "retired" not in prices


def test_whole_on_each_device(tmp_path):
    """A program that is not partitioned, on many devices: said, in the table and in JSON."""
    f = tmp_path / "step.mlir"
    f.write_text(STEP)
    one, many = advise(f, "--chip", "tpu-v5e", "--chip", "tpu-v5e-256", status=(0,))
    assert one["devices"] == 1 and not one["whole_on_each"] and many["devices"] == 256 and many["whole_on_each"]
    assert many["train"]["hbm_bytes"] == one["train"]["hbm_bytes"] and many["train"]["time_s"] == one["train"]["time_s"]
    assert many["train"]["energy_j"] > 200 * one["train"]["energy_j"] and many["train"]["usd_per_hour"] > 100 * one["train"]["usd_per_hour"]
    assert "whole on each device" in weft("advise", f, "--chip", "tpu-v5e-256").stdout
