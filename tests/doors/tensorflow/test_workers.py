"""MultiWorkerMirroredStrategy in several processes: the numbers of TensorFlow's MirroredStrategy in one; a worker that is killed is named."""
import concurrent.futures
import json
import os
import re
import socket
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from test_tensorflow import BUILD, HERE, beside, close, run, values  # noqa: E402

# each worker keeps its own statistics, as TensorFlow's have them: the first one's are what is saved
OWN = {"batch_norm": ("w4", "w5")}


def free_ports(n):
    sockets = [socket.create_server(("localhost", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def start(workers, *args, device, **env):
    addresses = [f"localhost:{port}" for port in free_ports(workers)]
    full = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "KERAS_", "JAX_"))}
    full.update(TF_CPP_MIN_LOG_LEVEL="3", WEFT_DEVICE=device, WEFT_PLUGIN=str(BUILD / "libpjrt_weft.so"), WEFT_THREADS="1", **env)
    tasks = [json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": i}}) for i in range(workers)]
    return [subprocess.Popen([sys.executable, *map(str, args)], env=dict(full, TF_CONFIG=task), cwd=HERE, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE) for task in tasks]


def finish(processes):
    """(status, output, errors) of each."""
    try:
        with concurrent.futures.ThreadPoolExecutor(len(processes)) as pool:
            said = list(pool.map(lambda p: p.communicate(timeout=900), processes))
    finally:
        for p in processes:
            p.kill()
    return [(p.returncode, *texts) for p, texts in zip(processes, said)]


CASES = re.findall(r"^@case\ndef (\w+)", (HERE / "workers.py").read_text(), re.M)
CHECKED = re.findall(r"^@in_several\ndef (\w+)", (HERE / "workers.py").read_text(), re.M)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """What one process of TensorFlow's makes of all cases, and what each of two workers makes of them."""
    truth, folder = tmp_path_factory.mktemp("truth"), tmp_path_factory.mktemp("workers")

    def workers():
        for status, _, err in finish(start(2, "workers.py", folder / "out", device="cpu:2", SHARED=str(folder))):
            assert status == 0, err[-4000:]
    beside(workers, lambda: run("workers.py", truth / "out", REPLICAS="4", SHARED=str(truth)))
    return values(truth / "out.0.npz"), [values(folder / f"out.{i}.npz") for i in range(2)]


@pytest.mark.parametrize("name", CASES)
def test_numbers(both, name):
    """Two workers with two devices each."""
    wanted, computed = both
    for worker, cases in enumerate((wanted, *computed)):
        assert "error" not in cases[name], str(cases[name]["error"])
        own = OWN.get(name, ()) if worker == 2 else ()
        close({k: v for k, v in cases[name].items() if k not in own}, {k: v for k, v in wanted[name].items() if k not in own}, 1e-5)


@pytest.mark.parametrize("name", CHECKED)
def test_in_place(both, name):
    for cases in both[1]:
        assert "error" not in cases[name], str(cases[name]["error"])


@pytest.mark.parametrize("device, each", [("A100", 1), ("A100:4", 2)])
def test_virtual_gpus(device, each):
    """A GPU without a number is each worker's own; a number of them is that of all."""
    program = """
import json
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
ids = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.ones(())))
print(json.dumps([len(tf.config.list_logical_devices("GPU")), strategy.num_replicas_in_sync,
                  float(strategy.experimental_local_results(ids)[0])]))"""
    for status, out, err in finish(start(2, "-c", program, device=device)):
        assert status == 0, err[-4000:]
        assert json.loads(out.splitlines()[-1]) == [each, 2 * each, 2.0 * each]


def test_killed(tmp_path):
    """The others end within seconds, and say who it was."""
    processes = start(3, "worker_killed.py", device="cpu", DIED=str(tmp_path / "died"))
    for status, out, err in finish(processes)[:2]:
        assert status == 0, err[-4000:]
        got = json.loads(out.splitlines()[-1])
        assert re.search(rf"process 2 \(pid {processes[2].pid} on .* has ended", got["said"]), got["said"]
        assert got["after"] < 20


def test_parameter_servers_are_refused():
    said = run("-c", """
import json
import tensorflow as tf
try:
    tf.distribute.ParameterServerStrategy(None)
except NotImplementedError as e:
    print(json.dumps(str(e)))""", device="cpu:2")
    assert "MultiWorkerMirroredStrategy" in said
