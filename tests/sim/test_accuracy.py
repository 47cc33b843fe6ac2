"""The claims of docs/accuracy.md, over a sample: every so many rows of all sets (tools/accuracy.py says how many)."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = os.environ.get("WEFT_BUILD", ROOT / "build")


def test_no_worse_than_it_was():
    p = subprocess.run([sys.executable, ROOT / "tools/accuracy.py", BUILD, "--gate"], capture_output=True, text=True, timeout=600)
    assert p.returncode == 0, p.stdout[-2000:] + p.stderr[-2000:]
