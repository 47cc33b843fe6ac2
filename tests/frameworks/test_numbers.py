"""Rounding, special values and long sums as JAX's CPU backend has them (docs/numerics.md)."""
import pytest

from test_training import run


def test_stored_values_are_what_readers_see():
    assert run("weft", "stored.py", "stored") == run("cpu", "stored.py", "stored")


@pytest.mark.parametrize("by_flag", [False, True])
def test_each_operation_is_rounded(by_flag):
    """xla_allow_excess_precision=false, as an option of the program and in XLA_FLAGS."""
    args = ["each", "by flag"][:1 + by_flag]
    flags = "--xla_allow_excess_precision=false" if by_flag else ""
    want, got = run("cpu", "stored.py", *args, flags=flags), run("weft", "stored.py", *args, flags=flags)
    for name, value in got.items():
        assert value == want[name.replace("chain", "by op")], name


def test_running_sums():
    """As exact as XLA's or more so; products, which round as often in any order, near it; both to the last digit of 16 bits."""
    want, got = run("cpu", "running.py"), run("weft", "running.py")
    assert got["special"] == want["special"]
    for name, error in got["errors"].items():
        room = 3 if name.startswith("product") else 1
        least = {"float32": 2e-7, "float64": 4e-16, "bfloat16": 2.0 ** -8 * 1.01, "float16": 2.0 ** -11 * 1.05}[name.split()[1]]
        for ours, theirs in zip(error, want["errors"][name]):
            assert ours <= max(room * theirs, least), (name, error, want["errors"][name])


@pytest.mark.parametrize("device", ["cpu", "interp"])
def test_nan_in_matrices(device):
    """What depends on a NaN shows it. Where LAPACK loses it (a pivot that is NaN divides nothing), weft does not."""
    want, got = run("cpu", "not_finite.py"), run("weft", "not_finite.py", device=device)
    for name, bad in got.items():
        if name.startswith("solve"):
            one = len(bad) // 5
            assert bad == ("." * one + "x" * one + "." * 3 * one if "(5,)" in name else "x" * len(bad)), name
        else:
            assert all(b == "x" for b, w in zip(bad, want[name]) if w == "x"), name
            if name.startswith(("cholesky", "lower", "upper", "right side")):  # the others say as much or more than JAX's
                assert bad == want[name], name


@pytest.mark.parametrize("device", ["cpu:4", "interp:4", "tpu-v5e-4"])
def test_ragged_all_to_all(device):
    """XLA's CPU backend has none: against numpy."""
    assert run("weft", "ragged.py", device=device)
