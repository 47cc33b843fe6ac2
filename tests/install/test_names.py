"""What the libraries show to the other libraries of a process: the plugin GetPjrtApi alone, libweft its own interface."""
import subprocess

from conftest import BUILD


def shown(path):
    text = subprocess.run(["nm", "-D", "--defined-only", "--no-demangle", path], check=True, capture_output=True, text=True).stdout
    return [line.split()[2].split("@")[0] for line in text.splitlines() if " A " not in line]


def test_plugin():
    assert shown(BUILD / "libpjrt_weft.so") == ["GetPjrtApi"]


def test_library():
    names = shown(BUILD / "libweft.so")
    assert "weft_client_open" in names
    assert [n for n in names if not n.startswith("weft_")] == []
