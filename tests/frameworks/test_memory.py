"""device.memory_stats(), compiled.memory_analysis() and cost_analysis() on the CPU and on a virtual chip; the chip's memory is a wall."""
import pytest

from test_training import run

MIB = 1 << 20


@pytest.mark.parametrize("device", ["cpu", "T4", "tpu-v2"])
def test_memory(device, monkeypatch):
    if device != "cpu":
        monkeypatch.setenv("WEFT_PHANTOM", "1")  # the numbers are not looked at; gigabytes stay unallocated
    got = run("weft", "memory.py", device=device)
    steps = {name: (in_use, peak, live) for name, in_use, peak, live in got["steps"]}
    args, outputs, alias, temp = got["analysis"]
    assert (args, outputs, alias) == (4 * MIB, 4 * MIB, 0)
    assert 4 * MIB <= temp <= 16 * MIB  # XLA for a T4: 16
    assert got["flops"] == pytest.approx(3 * 2 * 1024**3, rel=0.01)
    assert got["donated alias"] == 4 * MIB
    assert steps["start"][0] == 0
    assert steps["one array"][0] == 4 * MIB
    assert steps["ran"][:2] == (8 * MIB, 8 * MIB + temp)  # the peak is the plan's: arguments, results, temporaries
    assert steps["donated"][0] == 8 * MIB
    assert steps["deleted"][0] == 4 * MIB
    assert steps["all gone"][0] == 0 and steps["all gone"][2] == 0
    assert got["donated temp"] >= 16 * MIB
    assert steps["donated, with temporaries"][:2] == (16 * MIB, 16 * MIB + got["donated temp"])  # the argument counts, too
    if device != "cpu":
        assert steps["after the wall"][0] == 0
        made, put = got["errors"]
        assert "RESOURCE_EXHAUSTED" in put and "in use" in put
        assert "RESOURCE_EXHAUSTED" in made and "other arrays" in made and "in parts" in made and "batch" not in made


def test_scanned_layers():
    """Stacks that scan fills are not made first: no more temporaries than XLA's."""
    want, got = run("cpu", "scanned.py"), run("weft", "scanned.py")
    for name, (temp, grads) in got.items():
        assert grads == pytest.approx(want[name][1], rel=1e-3), name
        assert temp <= want[name][0], name


def test_long_attention():
    """Scores of attention are computed in blocks: they alone are 66 MiB in f32."""
    want, got = run("cpu", "long_attention.py"), run("weft", "long_attention.py")
    for name, (temp, y) in got.items():
        rel, near = (1e-2, 4e-3) if "bfloat16" in name else (1e-4, 1e-5)
        assert y == pytest.approx(want[name][1], rel=rel, abs=near), name
        assert temp <= 40 * MIB, (name, temp / MIB)
