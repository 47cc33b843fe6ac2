"""`weft launch`: processes of this machine, OpenMPI and Slurm; killed in the middle, stopped, refused in words; the history."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from conftest import BUILD  # noqa: E402
from slurm import Slurm  # noqa: E402

# Counts to $1, a file of its own keeps the count, so that it goes on after a kill.
COUNT = """echo $$ > $WEFT_RUN_OUT/pid-$RANK; n=0; f=$WEFT_RUN_OUT/count-$RANK; [ -f $f ] && n=$(cat $f)
while [ $n -lt $1 ]; do n=$((n+1)); echo "step $n/$1 rank $RANK of $WORLD_SIZE $2"; echo $n > $f.tmp; mv $f.tmp $f; sleep 0.2; done"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "count.sh").write_text(COUNT)
    return tmp_path


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    try:
        s = Slurm(tmp_path_factory.mktemp("slurm"))
    except RuntimeError as why:
        pytest.skip(str(why))
    yield s
    s.close()


def engines():
    return ["local", pytest.param("mpi", marks=pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun here (tools/setup.sh jobs)")),
            "slurm"]


@pytest.fixture
def engine(request):
    extra = request.getfixturevalue("slurm").env if request.param == "slurm" else {}
    return request.param, extra


def start(place, *args, env=None):
    full = dict(os.environ, WEFT_RUNS=str(place / "runs.db"), **(env or {}))
    return subprocess.Popen([str(BUILD / "weft"), *map(str, args)], cwd=place, env=full, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(place, *args, env=None, status=0):
    p = start(place, *args, env=env)
    out, err = p.communicate(timeout=120)
    assert p.returncode == status, out + err
    return out, err


def wait_for(what, seconds=30):
    end = time.time() + seconds
    while not what():
        assert time.time() < end, "it did not happen"
        time.sleep(0.05)


def last(place):
    return json.loads(run(place, "runs", "--json")[0])[0]


def nodes(engine):
    return ("--nodes", 2) if engine == "slurm" else ("--procs", 2)


@pytest.mark.parametrize("engine", engines(), indirect=True)
def test_all_ranks(place, engine):
    name, env = engine
    out, err = run(place, "launch", "--engine", name, *nodes(name), "--dir", "r", "--work", ".", "--", "sh", "count.sh", 3, env=env)
    for rank in (0, 1):
        assert [l for l in out.splitlines() if l.startswith(f"[{rank}]")] == [f"[{rank}] step {i}/3 rank {rank} of 2 " for i in (1, 2, 3)]
    r = last(place)
    assert (r["state"], r["engine"], r["step"], r["steps"], r["procs"]) == ("done", name, 3, 3, 2)
    assert 0.1 < r["step_s"] < 2 and (place / "r/out/count-1").read_text() == "3\n"
    assert (place / "r/work/count.sh").exists() and not (place / "r/work/r").exists()
    assert run(place, "launch", "logs", "--rank", 1)[0].count("rank 1 of 2") == 3


@pytest.mark.parametrize("engine", engines(), indirect=True)
def test_a_killed_rank_starts_again_where_it_was(place, engine):
    name, env = engine
    p = start(place, "launch", "--engine", name, *nodes(name), "--dir", "r", "--checkpoint", "{out}/count-0", "--resume", "resumed",
              "--", "sh", place / "count.sh", 10, env=env)
    wait_for(lambda: (place / "r/out/count-1").exists() and int((place / "r/out/count-1").read_text() or 0) >= 2)
    os.kill(int((place / "r/out/pid-1").read_text()), signal.SIGKILL)
    out, err = p.communicate(timeout=120)
    assert p.returncode == 0, out + err
    assert "killed by signal 9" in err and "start 1 of 3" in err
    steps = [l for l in out.splitlines() if l.startswith("[0]")]
    assert steps[-1] == "[0] step 10/10 rank 0 of 2 resumed"
    assert sum("step 1/10" in l for l in steps) == 1, "it began anew"
    assert last(place)["attempt"] == 1


@pytest.mark.parametrize("engine", engines(), indirect=True)
def test_ctrl_c_stops_what_was_started(place, engine):
    name, env = engine
    p = start(place, "launch", "--engine", name, *nodes(name), "--dir", "r", "--", "sh", place / "count.sh", 1000, env=env)
    wait_for(lambda: (place / "r/out/count-1").exists())
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    assert p.returncode != 0 and "stopped by hand" in err
    assert last(place)["state"] == "stopped"
    gone = lambda: not subprocess.run(["pgrep", "-f", f"^sh {place}/count.sh"], capture_output=True).stdout
    wait_for(gone, 15)


def test_slurm_cancels_the_job(place, slurm):
    """A job that is taken away by others starts again."""
    p = start(place, "launch", "--engine", "slurm", "--nodes", 1, "--dir", "r", "--restarts", 1, "--", "sh", place / "count.sh", 12, env=slurm.env)
    wait_for(lambda: (place / "r/out/count-0").exists())
    slurm.run("scancel", slurm.run("squeue", "-h", "-o", "%A").split()[0])
    out, err = p.communicate(timeout=120)
    assert p.returncode == 0, out + err
    assert "took job" in err or "was killed" in err
    assert "step 12/12" in out and last(place)["attempt"] == 1


def test_in_the_background(place):
    out, _ = run(place, "launch", "--detach", "--dir", "r", "--name", "bg", "--", "sh", place / "count.sh", 1000)
    assert "run 1 in" in out
    wait_for(lambda: (place / "r/out/count-0").exists())
    assert "running" in run(place, "launch", "status", "bg")[0]
    assert "told to stop" in run(place, "launch", "stop")[0]
    wait_for(lambda: last(place)["state"] == "stopped")
    assert "has ended" in run(place, "launch", "stop", place / "r")[0]


def test_stop_asks_which(place):
    for name in ("one", "two"):
        run(place, "launch", "--detach", "--dir", name, "--name", name, "--", "sh", place / "count.sh", 1000)
        wait_for(lambda: (place / name / "out/count-0").exists())
    _, err = run(place, "launch", "stop", status=1)
    assert "2 runs go on" in err and "1 (one)" in err and "2 (two)" in err
    assert {r["state"] for r in json.loads(run(place, "runs", "--json")[0])} == {"running"}
    assert "run 1 was told to stop" in run(place, "launch", "stop", 1)[0]
    wait_for(lambda: "stopped" in [r["state"] for r in json.loads(run(place, "runs", "--json")[0])])
    assert "run 2 was told to stop" in run(place, "launch", "stop")[0]
    wait_for(lambda: last(place)["state"] == "stopped")


@pytest.mark.parametrize("words, say", [
    (("--max-usd", "5"), "--max-usd needs a price"), (("--max-usd", "5", "--chips", "tpu7x:8"), "none is listed for these chips"),
    (("--hosts", "a:2,b:2"), "--hosts is of --engine mpi"), (("--partition", "p"), "--partition is of --engine slurm"),
    (("--account", "x"), "--account is of --engine slurm"), (("--more", "-v"), "--more is of --engine mpi, slurm or sky"),
    (("--resume", "--go"), "--resume without --checkpoint"), (("--checkpoint", "x"), "--checkpoint without --resume")])
def test_options_that_cannot_act(place, words, say):
    assert say in run(place, "launch", *words, "--dry-run", "--dir", "r", "--", "true", status=1)[1]
    assert not (place / "r").exists()


def test_options_of_another_verb(place):
    assert "a start does not read --rank" in run(place, "launch", "--rank", 1, "--", "true", status=2)[1]
    assert "stop does not read --follow" in run(place, "launch", "stop", "--follow", status=2)[1]
    assert "not --chips" in run(place, "launch", "--plan", "p", "--chips", "T4:1", "--", "true", status=2)[1]


def test_limits(place):
    _, err = run(place, "launch", "--max-time", "1s", "--", "sh", place / "count.sh", 1000, status=143)
    assert "--max-time" in err
    _, err = run(place, "launch", "--idle", "1s", "--", "sleep", 100, status=143)
    assert "no rank has printed" in err
    _, err = run(place, "launch", "--chips", "H100:8", "--gpus", 0, "--max-usd", "0.004", "--", "sh", place / "count.sh", 1000, status=143)
    assert "are spent" in err and last(place)["usd"] > 0.004


def test_failures_are_named_and_not_repeated(place):
    _, err = run(place, "launch", "--procs", 2, "--", "sh", "-c", "[ $RANK = 0 ] || exit 3; sleep 30", status=3)
    assert "rank 1 on" in err and "status 3" in err and "start 1" not in err
    _, err = run(place, "launch", "--", "no-such-command", status=78)
    assert "has no command no-such-command" in err
    _, err = run(place, "launch", "--chips", "H100:8", "--", "true", status=78)
    assert "has 0 accelerators, the job wants 8" in err


@pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun here (tools/setup.sh jobs)")
def test_hosts_that_are_not_there(place):
    """An address that nobody has (RFC 5737): it ends, with a sentence and what mpirun says."""
    _, err = run(place, "launch", "--engine", "mpi", "--hosts", "192.0.2.1:1,192.0.2.2:1", "--procs", 2, "--restarts", 0, "--", "true", status=78)
    assert "0 of 2 hosts answered" in err
    script = next(place.glob("runs/*/job.sh")).read_text()
    assert "ConnectTimeout" in script  # a host that swallows what is sent to it would be waited for


def test_hosts_that_differ(place):
    run(place, "launch", "--dry-run", "--dir", "r", "--", "true")

    def said(*lines, hosts=2):
        p = subprocess.run(["awk", "-v", f"hosts={hosts}", "-v", "gpus=0", "-v", "folder=/r", "-v", "command=true", "-f", "r/check.awk"],
                           input="".join(l + "\n" for l in lines), cwd=place, capture_output=True, text=True)
        return p.returncode, p.stdout

    good = "\tfolder=yes\tcommand=yes\tgpus=8\tpython=Python 3.11, jax 0.10.2"
    assert said("a" + good, "b" + good) == (0, "")
    assert "b has python Python 3.11, jax 0.9, a has" in said("a" + good, "b" + good.replace("0.10.2", "0.9"))[1]
    assert "1 of 2 hosts answered (a)" in said("a" + good)[1]
    assert said("mpirun: no route")[1].startswith("0 of 2 hosts answered: can each of them be reached")
    assert "host b cannot write to the run folder" in said("a" + good, "b" + good.replace("yes", "no"))[1]


def test_engines_that_are_not_there(place):
    nothing = {"PATH": "/nowhere"}
    assert "apt install slurm-client" in run(place, "launch", "--engine", "slurm", "--", "true", env=nothing, status=1)[1]
    assert "apt install openmpi-bin" in run(place, "launch", "--engine", "mpi", "--", "true", env=nothing, status=1)[1]
    assert "pip install skypilot" in run(place, "launch", "--engine", "sky", "--chips", "H100:8", "--", "true", env=nothing, status=1)[1]
    if shutil.which("sbatch"):
        conf = place / "slurm.conf"
        conf.write_text("ClusterName=none\nSlurmctldHost=localhost\nSlurmctldPort=1\nMessageTimeout=2\nAuthType=auth/none\nCredType=cred/none\n"
                        "NodeName=x\nPartitionName=p Nodes=x\n")
        _, err = run(place, "launch", "--engine", "slurm", "--", "true", env={"SLURM_CONF": str(conf)}, status=1)
        assert "Slurm does not answer" in err


def test_wrong_words(place):
    assert "which command" in run(place, "launch", status=2)[1]
    assert "--engine is one of" in run(place, "launch", "--engine", "pbs", "--", "true", status=2)[1]
    assert "status, logs or stop" in run(place, "launch", "statsu", status=2)[1]
    assert "no run was started" in run(place, "launch", "status", status=1)[1]
    assert "cannot open" in run(place, "launch", "--plan", "nothing.json", "--", "true", status=1)[1]
    (place / "p.json").write_text('{"choices": []}')
    assert "without a choice" in run(place, "launch", "--plan", "p.json", "--", "true", status=1)[1]
    (place / "p.json").write_text('{"choices": [{"chip": "H100", "chips": 1e300}]}')
    assert "a choice of 1e+300 chips" in run(place, "launch", "--plan", "p.json", "--", "true", status=1)[1]
    (place / "p.json").write_text("{")
    assert "not JSON" in run(place, "launch", "--plan", "p.json", "--", "true", status=1)[1]
    assert "cannot stage" in run(place, "launch", "--work", "nowhere", "--", "true", status=1)[1]
    assert "--procs with a multiple" in run(place, "launch", "--engine", "mpi", "--nodes", 2, "--procs", 3, "--dry-run", "--", "true", status=1)[1]


def test_from_a_plan(place):
    """weft plan --emit, weft launch --plan: what was planned stands beside what was measured."""
    run(place, "plan", "llama3-8b", "--chips", "H100:16", "--tokens", 1e8, "--emit", "job")
    plan = json.loads((place / "job/plan.json").read_text())["choices"][0]
    (place / "job/train.sh").write_text("for i in 1 2 3 4; do echo iteration $i/ 4 '| elapsed'; sleep 0.2; done\n")
    out, err = run(place, "launch", "--plan", "job", "--gpus", 0)
    r = last(place)
    assert r["plan_step_s"] == pytest.approx(plan["step_time_s"], rel=1e-3) and r["chips"] == 16 and r["model"] == "llama3-8b"
    assert r["usd"] == pytest.approx(r["seconds"] / 3600 * plan["usd_per_hour"], rel=1e-3)
    assert 0.15 < r["step_s"] < 1 and "(plan " in err
    out, _ = run(place, "launch", "--engine", "slurm", "--plan", "job", "--dry-run", "--dir", "s")
    assert "2 machines" in out and "--nodes=2 --ntasks=2" in (place / "s/job.sh").read_text()


def test_weft_train_goes_on_from_its_checkpoint(place):
    p = start(place, "launch", "--dir", "r", "--", BUILD / "weft", "train", "mnist", "--data", "synthetic", "--steps", 150, "--batch", 4, "--save-every", 10,
              "--no-compare", "--no-eval", "--out", "{out}/a")
    save = place / "r/out/a/checkpoint.safetensors"
    wait_for(save.exists, 60)
    for c in subprocess.run(["pgrep", "-f", "weft train mnist --data synthetic --steps 150"], capture_output=True, text=True).stdout.split():
        if pathlib.Path(f"/proc/{c}/exe").resolve().name == "weft" and "launch" not in pathlib.Path(f"/proc/{c}/cmdline").read_text():
            os.kill(int(c), signal.SIGKILL)
    out, err = p.communicate(timeout=180)
    assert p.returncode == 0, out + err
    assert "start 1 of 3" in err and "step 150/150" in out
    assert json.loads((place / "r/out/a/result.json").read_text())["steps"] < 150, "it began anew"


def test_runs_of_one_second_have_folders_of_their_own(place):
    runs = [start(place, "launch", "--", "true") for _ in range(4)]
    for p in runs:
        out, err = p.communicate(timeout=120)
        assert p.returncode == 0, out + err
    assert len(list((place / "runs").iterdir())) == 4


def test_plans_learn_from_runs(place):
    """A run on the chips that it was planned for: the next plan of that model takes its steps' time."""
    gpus = place / "bin"
    gpus.mkdir()
    (gpus / "nvidia-smi").write_text("#!/bin/sh\ncase $* in *driver*) echo 550.1;; *) for i in 1 2 3 4 5 6 7 8; do echo NVIDIA H100 80GB HBM3; done;; esac\n")
    (gpus / "nvidia-smi").chmod(0o755)
    env = {"PATH": f"{gpus}:{os.environ['PATH']}"}
    before = json.loads(run(place, "plan", "gpt2", "--chips", "H100:8", "--tokens", 1e8, "--json")[0])["choices"][0]
    (place / "plan.json").write_text(run(place, "plan", "gpt2", "--chips", "H100:8", "--tokens", 1e8, "--json")[0])
    run(place, "launch", "--plan", "plan.json", "--", "sh", place / "count.sh", 8, env=env)
    took = last(place)["step_s"]
    p = json.loads(run(place, "plan", "gpt2", "--chips", "H100:8", "--tokens", 1e8, "--json")[0])
    after = p["choices"][0]
    assert after["step_time_s"] == pytest.approx(took, rel=0.02) and "1 run of it on this chip" in p["words"]
    assert after["usd"] / before["usd"] == pytest.approx(after["step_time_s"] / before["step_time_s"], rel=0.05)
    _, err = run(place, "launch", "--plan", "plan.json", "--", "true", env={"PATH": os.environ["PATH"]}, status=78)
    assert "accelerators, the job wants 8" in err
    (gpus / "nvidia-smi").write_text("#!/bin/sh\nfor i in 1 2 3 4 5 6 7 8; do echo NVIDIA A100-SXM4-80GB; done\n")
    _, err = run(place, "launch", "--plan", "plan.json", "--", "true", env=env, status=78)
    assert "the plan is for H100" in err


@pytest.mark.parametrize("command, name", [((sys.executable, "-c", "pass"), pathlib.Path(sys.executable).name), ((sys.executable, "-m", "this"), "this"),
                                           ((str(BUILD / "weft"), "train", "--help"), "train"), (("sh", "-c", "true"), "sh")])
def test_names_that_are_no_options(place, command, name):
    """A run's folder begins with no '-'."""
    run(place, "launch", "--", *command)
    assert re.fullmatch(rf"{re.escape(name).replace('.', '-')}-\d+-\d+", next((place / "runs").iterdir()).name)
