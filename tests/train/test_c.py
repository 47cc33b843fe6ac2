"""examples/predict.c on libweft: the answers are the command's; a training run from C reports results only."""
import json
import os
import shutil
import subprocess

import numpy as np
import pytest

from conftest import BUILD, ROOT, weft

TEXT = "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer. " * 60

TRAIN = r"""
#include <stdio.h>
#include <weft.h>
static void show(void *user, const WeftProgress *p) {
  (void)user;
  if (p->test) printf("test %.6f %.6f\n", p->loss, p->accuracy);
}
int main(int argc, char **argv) {
  WeftClient *c;
  WeftTrainOptions o;
  WeftTrainResult r;
  WeftError *e = weft_client_open(NULL, "cpu:2", &c);
  if (!e) e = weft_train_defaults("mlp", &o);
  o.data = "synthetic"; o.layers = 16; o.batch = 64; o.steps = 3; o.replicas = 2; o.progress = show; o.out_dir = argv[argc - 1];
  if (!e) e = weft_train(c, &o, &r);
  if (e) printf("%s\n", weft_error_message(e));
  else printf("result %.6f\n", r.test_loss);
  weft_client_close(c);
  return e != NULL;
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    if not shutil.which("cc") or not (BUILD / "libweft.so").exists():
        pytest.skip("no C compiler, or no libweft")
    folder = tmp_path_factory.mktemp("c")
    (folder / "train.c").write_text(TRAIN)
    for source in (ROOT / "examples/predict.c", folder / "train.c"):
        subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", source, "-I", ROOT / "include", "-L", BUILD, "-lweft", f"-Wl,-rpath,{BUILD}", "-o",
                        folder / source.stem], check=True)
    return folder


def run(program, *args):
    env = dict(os.environ, WEFT_PLUGIN=str(BUILD / "libpjrt_weft.so"))
    return subprocess.run([program, *map(str, args)], capture_output=True, text=True, env=env, timeout=120)


def test_training_and_prediction(compiled, tmp_path):
    r = run(compiled / "train", tmp_path / "run")
    assert r.returncode == 0, r.stdout + r.stderr
    lines = r.stdout.split("\n")
    tests = [x for x in lines if x.startswith("test ")]
    assert len(tests) == 1 and tests[0].split()[1] == [x for x in lines if x.startswith("result")][0].split()[1]
    again = run(compiled / "train", tmp_path / "run")
    assert again.returncode == 1 and "holds a run" in again.stdout
    np.save(tmp_path / "x.npy", np.random.default_rng(1).integers(0, 256, (2, 28, 28)).astype(np.uint8))
    got = run(compiled / "predict", tmp_path / "run", tmp_path / "x.npy")
    assert got.returncode == 0, got.stderr
    want = json.loads(weft("predict", tmp_path / "run", tmp_path / "x.npy", "--measure", 0, "--json").stdout)["answers"]
    assert [int(x.split()[1]) for x in got.stdout.splitlines()[1:]] == [a["top"][0]["class"] for a in want]


def test_text(compiled, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    r = weft("train", "gpt2", "--size", 1, "--length", 16, "--data", f"text:{tmp_path / 'text.txt'}", "--batch", 4, "--steps", 20, "--no-compare",
             "--no-eval", "--out", tmp_path / "run")
    assert r.returncode == 0, r.stderr
    got = run(compiled / "predict", tmp_path / "run", "To be")
    want = weft("generate", tmp_path / "run", "--prompt", "To be", "--tokens", 32, "--temperature", 0)
    assert got.returncode == 0 and got.stdout.split("\n", 1)[1] == want.stdout
    assert run(compiled / "predict", tmp_path / "nothing", "x").returncode == 1
