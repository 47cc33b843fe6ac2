"""Shared by the Python tests: where the build is, the golden corpus, comparing with its tolerances."""
import json
import os
import pathlib
import signal
import subprocess

import ml_dtypes
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build"))
CORPUS = ROOT / "tests" / "golden" / "corpus"

# A shell's background jobs ignore it, and what they start does, too: programs that tests interrupt must not.
signal.signal(signal.SIGINT, signal.default_int_handler)


def manifest():
    return json.loads((CORPUS / "manifest.json").read_text())["programs"]


def weft(*args, env=None, timeout=300):
    """Runs the command; returns the completed process with text output."""
    full = dict(os.environ, **(env or {}))
    return subprocess.run([str(BUILD / "weft"), *map(str, args)], capture_output=True, text=True,
                          timeout=timeout, env=full)


_NARROW = {"bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
           "float8_e4m3": ml_dtypes.float8_e4m3, "float8_e3m4": ml_dtypes.float8_e3m4,
           "float8_e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz, "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
           "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz}


def as_values(array, dtype):
    if dtype in _NARROW:
        return array.view(_NARROW[dtype]).astype(np.float32)
    return array


def assert_golden(entry, path):
    """The outputs of a run against the corpus, by its README's rules."""
    want, got = np.load(CORPUS / f"{entry['name']}.npz"), np.load(path)
    for i, spec in enumerate(entry["outputs"]):
        w, g = as_values(want[f"out{i}"], spec["dtype"]), as_values(got[f"out{i}"], spec["dtype"])
        assert g.shape == w.shape, f"out{i}: shape {g.shape}, want {w.shape}"
        if entry.get("check") == "shape":
            continue
        tol = spec["tol"]
        if tol["kind"] == "exact":
            np.testing.assert_array_equal(g, w, err_msg=f"out{i}")
        else:
            np.testing.assert_allclose(g, w, rtol=tol["rtol"], atol=tol["atol"], equal_nan=True, err_msg=f"out{i}")


@pytest.fixture
def root():
    return ROOT
