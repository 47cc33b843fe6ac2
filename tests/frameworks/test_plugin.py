"""The JAX package: linear algebra, callbacks, donation, saving, as on JAX's CPU backend."""
import numpy as np

from test_training import ROOT, python, run


def compare(got, want, path):
    if isinstance(want, dict):
        assert got.keys() == want.keys()
        for key in want:
            compare(got[key], want[key], f"{path}/{key}")
    elif isinstance(want, list) and want and isinstance(want[0], list):
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            compare(g, w, f"{path}[{i}]")
    elif isinstance(want, list) and want and isinstance(want[0], float):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5, err_msg=path)
    else:
        assert got == want, path


def test_plugin():
    compare(run("weft", "plugin.py"), run("cpu", "plugin.py"), "")


def test_the_cpu_is_asked_for_first():
    """Before anything else: the question makes JAX look for backends, of which none is called cpu."""
    assert python("weft", "-c", "import jax; print(jax.devices('cpu')[0].platform)") == "weft"


def test_random_calls():
    """More of them: tests/frameworks/random_calls.py."""
    assert python("weft,cpu", str(ROOT / "tests" / "frameworks" / "random_calls.py"), "--count", "100") == "100 calls, 0 wrong"


def test_who_waits_runs_the_call():
    """A caller that waits after each call gains nothing from another thread; one that does not goes on at once."""
    waited, in_a_row = run("weft", "waits.py")
    assert waited > 15 and in_a_row < 20
