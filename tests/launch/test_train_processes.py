"""`weft train` in several processes, by mpirun and by srun: to the bit what one process computes with as many replicas; who is killed,
told to stop, or makes another run is named; a run goes on in another number of processes."""
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from conftest import BUILD  # noqa: E402
from test_launch import last, run, slurm, start, wait_for  # noqa: E402, F401

WEFT = str(BUILD / "weft")
TRAIN = ("train", "mnist", "--data", "synthetic", "--batch", 24, "--no-compare")
needs_mpi = pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun here (tools/setup.sh jobs)")


def starter(name, n, request):
    """The command that starts n processes of another, and its environment."""
    if name == "mpirun":
        return ["mpirun", "--oversubscribe", "-np", str(n)], {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return ["srun", "--nodes=1", f"--ntasks={n}", "--overcommit", "--kill-on-bad-exit=1"], request.getfixturevalue("slurm").env


STARTERS = [pytest.param("mpirun", marks=needs_mpi), "srun"]


def begin(place, by, *args, script=None):
    """script: shell around the command, "$@"."""
    cmd, env = by
    words = [*cmd, *(["sh", "-c", script, "sh"] if script else []), WEFT, *map(str, args)]
    return subprocess.Popen(words, cwd=place, env=dict(os.environ, **env), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(p, status=0):
    out, err = p.communicate(timeout=240)
    assert (p.returncode == 0) == (status == 0), out + err
    return out, err


def step_of(checkpoint):
    with open(checkpoint, "rb") as f:
        return int(json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))["__metadata__"]["step"])


def results(folder):
    r = json.loads((folder / "result.json").read_text())
    return {k: r.get(k) for k in ("train_loss", "test_loss", "test_accuracy", "steps")}


@pytest.fixture
def place(tmp_path):
    return tmp_path


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Five steps and evaluations of four replicas in one process."""
    place = tmp_path_factory.mktemp("alone")
    run(place, *TRAIN, "--steps", 5, "--replicas", 4, "--eval-every", 2, "--out", "o")
    return place / "o"


@pytest.mark.parametrize("name, n", [pytest.param("mpirun", 3, marks=needs_mpi), ("srun", 2)])
def test_the_same_to_the_bit(place, alone, name, n, request):
    """Four replicas over three processes, and over two; the log has each step once."""
    by = starter(name, n, request)
    finish(begin(place, by, *TRAIN, "--steps", 5, "--replicas", 4, "--eval-every", 2, "--out", "o", "--log", "log"))
    assert (place / "o/checkpoint.safetensors").read_bytes() == (alone / "checkpoint.safetensors").read_bytes()
    assert results(place / "o") == results(alone)
    steps = [json.loads(line)["step"] for line in (place / "log").read_text().splitlines() if "train_loss" in line or '"loss"' in line]
    assert sorted(set(steps)) == [1, 2, 3, 4, 5]
    assert len(list((place / "o").glob("events.out.tfevents.*"))) == 1


@needs_mpi
def test_batch_statistics_are_averaged(place):
    args = ("train", "davidnet", "--data", "synthetic", "--batch", 8, "--steps", 2, "--replicas", 2, "--no-eval", "--no-compare")
    run(place, *args, "--out", "one")
    finish(begin(place, starter("mpirun", 2, None), *args, "--out", "two"))
    assert (place / "one/checkpoint.safetensors").read_bytes() == (place / "two/checkpoint.safetensors").read_bytes()


def pids_of(place, n):
    """Of the processes, by rank."""
    wait_for(lambda: all((place / f"pid-{i}").exists() and (place / f"pid-{i}").read_text().strip() for i in range(n)), 60)
    return [int((place / f"pid-{i}").read_text()) for i in range(n)]


WITH_PID = 'r=${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}; echo $$ > pid-$r; exec "$@" 2> err-$r'


@pytest.mark.parametrize("name", STARTERS)
def test_one_that_is_killed_is_named(place, name, request):
    """The others end by themselves, their last checkpoint is whole, and the run goes on from it in one process."""
    cmd, env = starter(name, 3, request)
    if name == "srun":  # the others are left to end by themselves
        cmd = [c for c in cmd if "kill-on" not in c] + ["--kill-on-bad-exit=0", "--wait=0"]
    script = WITH_PID.replace("exec ", "") + "; echo $? > status-$r; exit 0"  # mpirun would end them
    p = begin(place, (cmd, env), *TRAIN, "--steps", 100000, "--replicas", 3, "--save-every", 2, "--no-eval", "--out", "o", script=script)
    wait_for((place / "o/checkpoint.safetensors").exists, 60)
    child = subprocess.run(["pgrep", "-P", str(pids_of(place, 3)[2])], capture_output=True, text=True).stdout.split()[0]
    os.kill(int(child), signal.SIGKILL)
    finish(p)
    for rank in (0, 1):
        assert (place / f"status-{rank}").read_text().strip() == "1"
        assert re.search(rf"UNAVAILABLE: .*process 2 \(pid {child} on .*has ended", (place / f"err-{rank}").read_text())
    at = step_of(place / "o/checkpoint.safetensors")
    run(place, "train", "--resume", "o", "--steps", at + 1, "--out", "o", "--no-compare", "--no-eval")
    assert step_of(place / "o/checkpoint.safetensors") == at + 1


@needs_mpi
def test_on_in_another_number_of_processes(place):
    """Two steps in two processes, two in three, one in one: as if nothing had been."""
    args = (*TRAIN, "--no-eval", "--replicas", 4)
    finish(begin(place, starter("mpirun", 2, None), *args, "--steps", 2, "--out", "o"))
    finish(begin(place, starter("mpirun", 3, None), "train", "--resume", "o", "--steps", 4, "--out", "o", "--no-eval", "--no-compare"))
    run(place, "train", "--resume", "o", "--steps", 5, "--out", "o", "--no-eval", "--no-compare")
    run(place, *args, "--steps", 5, "--out", "whole")
    assert (place / "o/checkpoint.safetensors").read_bytes() == (place / "whole/checkpoint.safetensors").read_bytes()


@needs_mpi
def test_one_is_told_to_stop(place):
    """All finish the same step; process 0 saves it."""
    p = begin(place, starter("mpirun", 2, None), *TRAIN, "--steps", 100000, "--save-every", 1, "--no-eval", "--out", "o", script=WITH_PID)
    wait_for((place / "o/checkpoint.safetensors").exists, 60)
    os.kill(pids_of(place, 2)[1], signal.SIGTERM)
    finish(p, 143)
    assert results(place / "o")["steps"] == step_of(place / "o/checkpoint.safetensors") < 100000


@needs_mpi
@pytest.mark.parametrize("other, words", [
    ("--lr 0.5", r"process 1 makes another run than process 0: its lr is '0.5', that of process 0 '0.001'"),
    ("--seed 7", r"process 1 makes another run than process 0: its seed is '7'"),
    ("--data mnist --data-dir nowhere", r"process 1 \(pid \d+ on .*\) failed: 'nowhere' has no"),
    ("--replicas 3", r"process 0 has 1 device for 2 of 3 replicas"),
])
def test_other_commands_are_named(place, other, words):
    p = begin(place, starter("mpirun", 2, None), *TRAIN, "--steps", 3, script=f'[ $OMPI_COMM_WORLD_RANK = 0 ] || set -- "$@" {other}; exec "$@"')
    _, err = finish(p, 1)
    assert re.search(words, err), err


def test_alone_when_told_to(place):
    """--coordinator none, and a batch script's own process."""
    env = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}
    run(place, *TRAIN, "--steps", 1, "--no-eval", "--coordinator", "none", "--out", "o", env=env)
    assert (place / "o/result.json").exists()
    assert "process 0 of 2 for" not in run(place, *TRAIN, "--steps", 1, "--no-eval", env={"SLURM_PROCID": "0", "SLURM_NTASKS": "2"})[1]


@pytest.mark.parametrize("engine", ["local", pytest.param("mpi", marks=needs_mpi), "slurm"])
def test_weft_launch(place, alone, engine, request):
    """The same run by `weft launch`; on Slurm over two nodes."""
    env = request.getfixturevalue("slurm").env if engine == "slurm" else {}
    how = ("--nodes", 2) if engine == "slurm" else ("--procs", 2)
    run(place, "launch", "--engine", engine, *how, "--dir", "r", "--", WEFT, *TRAIN, "--steps", 5, "--replicas", 4, "--eval-every", 2, "--out", "{out}/o", env=env)
    assert (place / "r/out/o/checkpoint.safetensors").read_bytes() == (alone / "checkpoint.safetensors").read_bytes()
    assert last(place)["step"] == 5


@needs_mpi
def test_weft_launch_starts_again(place):
    """A rank that is killed takes the others with it; the run goes on from its checkpoint."""
    p = start(place, "launch", "--engine", "mpi", "--procs", 2, "--dir", "r", "--", WEFT, *TRAIN, "--steps", 60, "--save-every", 5, "--no-eval", "--out", "{out}/o")
    wait_for((place / "r/out/o/checkpoint.safetensors").exists, 60)
    of_run = [int(c) for c in subprocess.run(["pgrep", "-f", "weft train mnist --data synthetic --batch 24 --no-compare --steps 60"],
                                             capture_output=True, text=True).stdout.split()]
    ranks = [c for c in of_run if pathlib.Path(f"/proc/{c}/exe").resolve().name == "weft" and
             "\0RANK=1\0" in pathlib.Path(f"/proc/{c}/environ").read_text() and str(place) in os.readlink(f"/proc/{c}/cwd")]
    os.kill(ranks[0], signal.SIGKILL)
    out, err = p.communicate(timeout=240)
    assert p.returncode == 0, out + err
    assert "start 1 of 3" in err and step_of(place / "r/out/o/checkpoint.safetensors") == 60
    assert json.loads((place / "r/out/o/result.json").read_text())["steps"] < 60
