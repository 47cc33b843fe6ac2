"""An installed tree: `make install PREFIX=...` somewhere else than was configured, and what people do with it."""
import os
import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT

if not all(map(shutil.which, ("cmake", "cc", "pkg-config"))):
    pytest.skip("needs cmake, cc and pkg-config", allow_module_level=True)

ANSWER = "on TPU v5 lite: 4 5 10 11\n"  # of examples/run.c


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("install") / "there"
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, capture_output=True)
    return prefix


def answer(program, there):
    env = dict(os.environ, LD_LIBRARY_PATH=str(there / "lib"))
    r = subprocess.run([program, "tpu-v5litepod-1"], env=env, capture_output=True, text=True)
    return r.stdout or r.stderr


def test_pkg_config(there, tmp_path):
    """The first line of examples/run.c."""
    env = dict(os.environ, PKG_CONFIG_PATH=str(there / "lib/pkgconfig"))
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "weft"], check=True, env=env, capture_output=True, text=True)
    subprocess.run(["cc", there / "share/doc/weft/examples/run.c", *flags.stdout.split(), "-o", tmp_path / "run"], check=True)
    assert answer(tmp_path / "run", there) == ANSWER


def test_cmake(there, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.20)\nproject(mine C)\nfind_package(weft 0.1 REQUIRED)\n"
                                             f"add_executable(run {ROOT}/examples/run.c)\ntarget_link_libraries(run weft::weft)\n")
    for step in (["-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={there}"], ["--build", tmp_path / "b"]):
        subprocess.run(["cmake", *step], check=True, capture_output=True)
    assert answer(tmp_path / "b/run", there) == ANSWER


def test_command(there):
    r = subprocess.run([there / "bin/weft", "version"], capture_output=True, text=True)
    assert r.stdout.startswith("weft ") and not r.returncode, r.stderr


def test_manual(there):
    """A page for each verb that `weft help` lists, with its usage."""
    verbs = subprocess.run([there / "bin/weft", "help"], capture_output=True, text=True).stdout.splitlines()
    names = [v.split()[0] for v in verbs if v.startswith("  ") and v.split()[0] != "version"]
    pages = {f.name for f in (there / "share/man/man1").iterdir()}
    assert pages == {"weft.1", *(f"weft-{n}.1" for n in names)}
    text = (there / "share/man/man1/weft-train.1").read_text()
    assert "train a model on data" in text and ".B \\-\\-epochs N" in text


def test_terms(there):
    assert "Apache License" in (there / "share/doc/weft/LICENSE").read_text()
