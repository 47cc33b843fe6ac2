"""PyTorch/XLA's programs on weft against PyTorch on this CPU."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tomllib

import numpy as np
import pytest

pytest.importorskip("torch_xla")

from conftest import BUILD, ROOT, weft  # noqa: E402

HERE = pathlib.Path(__file__).parent
CASES = [line[4:-3] for before, line in zip([""] + (HERE / "programs.py").read_text().splitlines(),
                                            (HERE / "programs.py").read_text().splitlines()) if before == "@case"]


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """The entry points of pyproject.toml, as an installed package has them."""
    site = tmp_path_factory.mktemp("site")
    info = site / "weft-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: weft\nVersion: 0.1.0\n")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    (info / "entry_points.txt").write_text("".join(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in rows.items())
                                                   for group, rows in groups.items()))
    return site


def run(installed, device, *args, timeout=1200, **env):
    """Runs a program with WEFT_DEVICE and nothing else; returns what it printed last, as JSON."""
    full = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "PJRT_", "TPU_", "XLA_"))}
    full.update(WEFT_DEVICE=device, WEFT_PLUGIN=str(BUILD / "libpjrt_weft.so"), HF_HUB_OFFLINE="1",
                PYTHONPATH=os.pathsep.join([str(installed), str(ROOT / "python")]), **env)
    r = subprocess.run([sys.executable, *map(str, args)], env=full, capture_output=True, text=True, timeout=timeout, cwd=HERE)
    assert r.returncode == 0, r.stderr[-4000:]
    return json.loads(r.stdout.splitlines()[-1])


def close(pair, tolerance=1e-5):
    assert not isinstance(pair, str), pair
    got, want = pair
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.fixture(scope="module")
def on_cpu(installed):
    return run(installed, "cpu", "programs.py")


@pytest.mark.parametrize("name", CASES)
def test_program(on_cpu, name):
    close(on_cpu[name])


def test_virtual_tpu(installed):
    """PyTorch/XLA takes it for a TPU; products are in its precision."""
    got = run(installed, "tpu-v5e", "programs.py", "perceptron", "scattered")
    close(got["perceptron"], 2e-2)
    close(got["scattered"])
    r = run(installed, "tpu-v5e", "-c", "import json, torch_xla, torch_xla.core.xla_model as xm, torch_xla.runtime as xr; d = torch_xla.device()\n"
            "print(json.dumps([xr.device_type(), xm.xla_device_hw(d), xm.get_memory_info(d)['bytes_limit'] >> 30]))")
    assert r[:2] == ["TPU", "TPU"] and 14 <= r[2] <= 16


def test_replicas(installed, tmp_path):
    n = 4
    truth = run(installed, f"cpu:{n}", "replicas.py", tmp_path, n)
    for i in range(n):
        got = json.loads((tmp_path / f"{i}.json").read_text())
        assert (got["ordinal"], got["world"]) == (i, n)
        assert got["all_reduce"] == [10.0] * 4
        assert got["all_gather"] == [float(k + 1) for k in range(n) for _ in range(4)]
        assert got["reduce_scatter"] == [10.0 * i]
        assert got["all_to_all"] == [i + 10.0 * k for k in range(n)]
        assert got["permuted"] == [float((i - 1) % n + 1)] * 4
        assert got["in_groups"] == [3.0 if i < 2 else 7.0] * 4
        assert got["distributed"] == [i, n, 10.0, 10.0]
        assert got["after"] == [4.0] * 4
        assert got["drawn"] == truth["drawn"][i]
        close((got["weights"], truth["weights"]))
        close((got["ddp"], truth["weights"]))
        close(([got["loss"]], [truth["loss"]]))


def test_processes(installed, tmp_path):
    """torchrun's, a replica each: their gradients are those of the whole batch in PyTorch."""
    n = 2
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    run(installed, "cpu", "-m", "torch.distributed.run", f"--nproc_per_node={n}", f"--master_port={port}", "processes.py", tmp_path, timeout=250,
        OMP_NUM_THREADS="1")
    truth = run(installed, "", "-c", "import json, torch.nn.functional as F, torch\n"
                "from replicas import data, model\n"
                "net, (x, y) = model(), data()\n"
                "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
                "for _ in range(3):\n"
                "    optimizer.zero_grad()\n"
                "    F.cross_entropy(net(x), y).backward()\n"
                "    optimizer.step()\n"
                "print(json.dumps([v for p in net.parameters() for v in p.detach().flatten().tolist()]))")
    for i in range(n):
        got = json.loads((tmp_path / f"{i}.json").read_text())
        assert (got["world"], got["sum"], got["gathered"], got["reduced"]) == (n, [3.0, 3.0], [1.0, 2.0], 1)
        close((got["weights"], truth))


def test_replica_that_fails_is_not_waited_for(installed):
    with pytest.raises(AssertionError, match="no such file"):
        run(installed, "cpu:2", "replicas.py", "one_fails", timeout=250)  # WEFT_EXCHANGE_TIMEOUT is 300


def test_mesh(installed):
    got = run(installed, "cpu:4", "spmd.py")
    close(got["tensor_parallel"])
    close(got["fsdp"])


@pytest.mark.parametrize("name, replicas, device, tolerance", [("lightning", 1, "cpu", 1e-5), ("lightning", 8, "tpu-v3-8", 2e-2),
                                                               ("lightning", 4, "cpu:4", 1e-5), ("accelerate", 1, "cpu", 1e-5),
                                                               ("accelerate", 2, "cpu:2", 1e-5), ("trainer", 1, "cpu", 1e-5)])
def test_library_with_a_loop(installed, tmp_path, name, replicas, device, tolerance, door=()):
    """They find the device and its replicas by themselves; what they leave in the program's own objects is what was trained."""
    pytest.importorskip({"trainer": "transformers"}.get(name, name))
    folders = [tmp_path / "got", tmp_path / "want"]
    for folder in folders:
        folder.mkdir()
    got = run(installed, device, *door, "trainers.py", name, replicas, folders[0])
    want = run(installed, "", "trainers.py", name, replicas, folders[1], USE_TORCH_XLA="0")
    assert got.pop("device") == "xla" and got.keys() == want.keys()
    for key in want:
        close((got[key], want[key]), tolerance)


@pytest.mark.parametrize("name", ["lightning", "accelerate", "trainer"])
def test_library_for_cuda(installed, tmp_path, name):
    test_library_with_a_loop(installed, tmp_path, name, 1, "V100", 1e-4, door=("-m", "weft.torch"))


def test_recordings(installed, tmp_path):
    """The profiler's sessions and its server have the chip's time; kernels and what does not fit have the line of the program, not that of
    a layer of PyTorch's."""
    line = 1 + next(i for i, text in enumerate((HERE / "recorded.py").read_text().splitlines()) if "self.up(x)" in text)
    got = run(installed, "tpu-v5e", "recorded.py", tmp_path, WEFT_PHANTOM="1")
    assert f"recorded.py:{line} (" in got["said"], got["said"]
    assert got["compiled"] and "ExecuteTime" in got["report"]
    for how in ("session", "served"):
        kernels = json.loads(weft("profile", tmp_path / how, "--json").stdout)["kernels"]
        assert kernels and all(0 < k["step_s"] < 1e-3 for k in kernels)
        assert any(f"recorded.py:{line} (train" in k["source"] for k in kernels)


@pytest.mark.parametrize("script", ["plain.py", "scaled.py", "usual.py", "further.py", "library_ways.py"])
def test_script_for_cuda(installed, script):
    """On a virtual GPU, in its precision; without one PyTorch has no CUDA device and takes the CPU."""
    close((run(installed, "A100-80GB", "-m", "weft.torch", script), run(installed, "", script)), 2e-2)


def estimated(script, *more, site=""):
    """weft estimate of a script, from the source tree; with a folder of entry points as of an installed package."""
    env = dict(os.environ, WEFT_PYTHON=sys.executable, WEFT_PLUGIN=str(BUILD / "libpjrt_weft.so"), PYTHONPATH=str(site))
    return env, subprocess.run([BUILD / "weft", "estimate", script, "--chip", "A100-80GB", *more], env=env, capture_output=True, text=True)


REFUSED = """import sys, torch
w = torch.nn.Parameter(torch.zeros(int(sys.argv[1]), 4, device="cuda"))
optimizer = torch.optim.SGD([w], lr=0.1)
for _ in range(2):
    (w * 2).sum().backward()
    if len(w) == 8:
        graph = torch.cuda.CUDAGraph()
    optimizer.step()
"""


def test_script_of_the_source_tree(tmp_path):
    """No entry point is installed; the script has arguments of its own; what it cannot have is named with its line."""
    script = tmp_path / "train.py"
    script.write_text(REFUSED)
    _, r = estimated(script, "--", "7")
    assert r.returncode == 0 and "f32[7,4]" in r.stdout, r.stderr
    _, r = estimated(script, "--", "8")
    assert r.returncode == 1 and "train.py:7: graph = torch.cuda.CUDAGraph()" in r.stderr and "cannot be captured" in r.stderr, r.stderr


TWO = """import torch
a, b = torch.nn.Linear(4, 5, device="cuda"), torch.nn.Linear(5, 6, device="cuda")
first, second = torch.optim.Adam(a.parameters()), torch.optim.Adam(b.parameters())
for _ in range(4):
    a(torch.ones(3, 4, device="cuda")).sum().backward()
    first.step()
    b(a(torch.ones(3, 4, device="cuda")).detach()).sum().backward()
    second.step()
"""
USED = """import torch
a = torch.nn.Linear(4, 5).cuda()
with torch.inference_mode():
    print(a(torch.ones(7, 4).cuda()).sum().item())
"""
ASKS = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.parse_args()
"""


def test_scripts_of_other_kinds(tmp_path):
    """Two optimizers are one step; a model in use is its largest program; arguments that are missing are asked for."""
    script = tmp_path / "train.py"
    script.write_text(TWO)
    _, r = estimated(script)
    assert r.returncode == 0 and "f32[5,4]" in r.stdout and "f32[6,5]" in r.stdout and "exp_avg of " in r.stdout, r.stdout + r.stderr
    script.write_text(USED)
    _, r = estimated(script)
    assert r.returncode == 0 and "f32[7,4]" in r.stdout and "no step of an optimizer" in r.stderr, r.stdout + r.stderr
    script.write_text(ASKS)
    _, r = estimated(script)
    assert r.returncode == 1 and "what follows -- is the script's" in r.stderr, r.stderr


def test_script_is_estimated(installed, tmp_path):
    env, r = estimated(HERE / "plain.py", site=installed)
    assert r.returncode == 0, r.stderr
    assert "A100" in r.stdout
    for name in (" 5.weight", "exp_avg of 5.weight", "1.running_mean", "plain.py:19"):  # of the script's own tensors, and a line of it
        assert name in r.stdout, r.stdout
    step = tmp_path / "step.mlirbc"
    full = dict(env, PYTHONPATH=os.pathsep.join([str(installed), str(ROOT / "python")]))
    subprocess.run([sys.executable, "-m", "weft.torch", "--capture", step, HERE / "plain.py"], env=full, check=True)
    assert step.read_bytes()
