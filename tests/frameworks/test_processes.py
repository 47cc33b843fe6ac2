"""Several processes of one job (jax.distributed.initialize): the numbers of one process of JAX's own CPU backend with as many devices;
one that is killed, does something else or does not come is named."""
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import socket
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(pathlib.Path(__file__).parent / "programs" / "processes.py")


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def start(count, *args, device="cpu:2", only=None, **env):
    """The processes of a job, or those of `only`."""
    env = dict(os.environ, JAX_PLATFORMS="weft", WEFT_DEVICE=device, PROCESSES=str(count), COORDINATOR=f"localhost:{free_port()}",
               PYTHONPATH=str(ROOT / "python"), WEFT_THREADS="1", **env)
    return [subprocess.Popen([sys.executable, *args], env=dict(env, PROCESS=str(i)), text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE) for i in (range(count) if only is None else only)]


def finish(processes, seconds=120):
    """(status, output, errors) of each."""
    try:
        with concurrent.futures.ThreadPoolExecutor(len(processes)) as pool:  # all read at once: they wait for each other
            said = list(pool.map(lambda p: p.communicate(timeout=seconds), processes))
    finally:
        for p in processes:
            p.kill()
    return [(p.returncode, *texts) for p, texts in zip(processes, said)]


@functools.cache
def by_jax(devices):
    env = dict(os.environ, JAX_PLATFORMS="cpu", XLA_FLAGS=f"--xla_force_host_platform_device_count={devices}")
    env.pop("PROCESSES", None)
    said = subprocess.run([sys.executable, PROGRAM], env=env, text=True, capture_output=True, timeout=120)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout.splitlines()[-1])


@pytest.mark.parametrize("processes, device", [(2, "cpu:2"), (4, "cpu")])
def test_numbers(processes, device):
    want = by_jax(4)
    for status, out, err in finish(start(processes, PROGRAM, device=device)):
        assert status == 0, err
        got = json.loads(out.splitlines()[-1])
        assert got.keys() == want.keys()
        for name in want:
            assert len(got[name]) == len(want[name])
            for k, (a, b) in enumerate(zip(got[name], want[name])):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5, err_msg=f"{name}, result {k}")


LOST = str(pathlib.Path(__file__).parent / "programs" / "process_lost.py")


def errors_of(processes):
    said = [p.communicate(timeout=60) for p in processes]
    return [out.splitlines()[-1].split(" ", 1) for out, err in said]


@pytest.mark.parametrize("deed, seconds, words", [
    ("dies", 3, "process 2 (pid {pid} on .*has ended"),
    ("stops", 8, "waited 4 s for process 2 (pid {pid} on .*was last at all_reduce.* in 'jit_step'"),
    ("other", 4, "process [01] comes to all_reduce.*x3xf32.*process 2 (pid {pid} on .*all_reduce.*x5xf32"),
])
def test_lost(deed, seconds, words):
    """Of three processes the last dies, stops, or comes to something else: the others end, and say who it is."""
    processes = start(3, LOST, deed, device="cpu", WEFT_EXCHANGE_TIMEOUT="4" if deed == "stops" else "300")
    try:
        said = errors_of(processes[:2])
    finally:
        for p in processes:
            p.kill()
    pattern = words.replace("{pid}", str(processes[2].pid)).replace("(pid", r"\(pid")
    for waited, text in said:
        assert re.search(pattern, text) or re.search(r"process [01] \(pid .*", text), text
        assert float(waited) < seconds + 5
    assert any(re.search(pattern, text) for _, text in said), said


def test_missing():
    """Of two processes one never starts its backend."""
    processes = start(2, "-c", """
import os, sys, time, jax
jax.distributed.initialize(os.environ["COORDINATOR"], 2, int(os.environ["PROCESS"]))
if os.environ["PROCESS"] == "1":
    time.sleep(60)
try:
    jax.devices()
except RuntimeError as error:
    print(error, file=sys.stderr, flush=True)
os._exit(3)
""", device="cpu", WEFT_EXCHANGE_TIMEOUT="3")
    try:
        _, err = processes[0].communicate(timeout=60)
    finally:
        for p in processes:
            p.kill()
    assert "process 1 of 2 has not come within 3 s" in err


def test_unlike():
    """Devices that cannot be one job's."""
    processes = start(2, "-c", "import os, jax; jax.distributed.initialize(os.environ['COORDINATOR'], 2, int(os.environ['PROCESS'])); "
                               "jax.devices()", device="tpu-v5e-4")
    for status, _, err in finish(processes):
        assert status and "2 processes cannot share 'tpu-v5e-4', which has 4 devices on 1 host" in err


def test_slice_by_hosts():
    """A slice of 8 chips on two hosts: the same devices, memory and time as seen from one process."""
    pod = str(pathlib.Path(__file__).parent / "programs" / "process_pod.py")
    one, *two = [json.loads(out.splitlines()[-1]) for count in (1, 2)
                 for _, out, _ in finish(start(count, pod, device="tpu-v5p-16", WEFT_PHANTOM="1"))]
    assert [len(one["all"]), *one["all"][-1]] == [8, 7, 1, 1, 1]
    for process, seen in enumerate(two):
        assert seen["all"] == one["all"] and seen["cost"] == one["cost"]
        assert seen["own"] == [[4 * process + k, process] for k in range(4)]
        assert seen["shards"] == one["shards"][4 * process:4 * process + 4]
