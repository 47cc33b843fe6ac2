"""A handful of the programs that random_programs.py draws, in every way that weft has of computing them."""
import pathlib
import subprocess
import sys


def test_random_programs():
    r = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("random_programs.py"), "--first", "1", "--count", "16"], capture_output=True, text=True, timeout=900)
    assert r.returncode == 0, r.stdout[-8000:] + r.stderr[-4000:]
