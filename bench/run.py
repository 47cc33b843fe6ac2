#!/usr/bin/env python3
"""Times weft against what people use instead, in turn on this machine, and writes a table.

    bench/run.py [WORKLOAD ...] [--peers weft,jax,torch] [--threads 2] [--rounds 2] [--starts 3] [--out FILE] [--docs]

Each measurement is a process of its own that runs the compiling step, a second one and then some that are timed; the peers alternate,
`--rounds` times. A figure is the median over the rounds of the median over the steps. weft and JAX then take `--starts` more turns that
end with the first step: compile time and time to the first result are the least over all of these processes, each of which compiles for
the first time, with no cache. Peers are found by what an interpreter can
import: BENCH_JAX, BENCH_TORCH and BENCH_TF name the interpreters (this one otherwise), BENCH_LLMC a checkout of llm.c; a peer that is
not there is left out. `pip install -r bench/requirements.txt` installs them.

The measurements are kept in --out (bench/results/MACHINE.json); a later run replaces the workloads, peers and thread counts that it
measures and leaves the others, so a table can be made in parts. --docs writes docs/performance.md from the files of all machines, each with a
table of its MACHINE-peers.json, of peers that were measured in runs of their own, where there is one."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

import machine
import report
import workloads

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))
import weft_train  # noqa: E402

ROOT = HERE.parent
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT / "python"), os.environ.get("PYTHONPATH"))))  # weft's JAX plugin
INSTALL = "pip install -r bench/requirements.txt"

# name -> script and its arguments, variable with the interpreter, what it must import, environment
PEERS = {
    "weft": (["one.py", "jax"], "BENCH_JAX", "jax_plugins.weft", {"JAX_PLATFORMS": "weft", "WEFT_DEVICE": "cpu"}),
    "weft_train": (["weft_train.py"], "BENCH_JAX", "json", {}),
    "jax": (["one.py", "jax"], "BENCH_JAX", "jax", {"JAX_PLATFORMS": "cpu"}),
    "torch": (["one.py", "torch"], "BENCH_TORCH", "torch", {}),
    "torch_compile": (["one.py", "torch", "--mode", "compile"], "BENCH_TORCH", "torch", {}),
    "tf": (["one.py", "tensorflow"], "BENCH_TF", "tensorflow", {}),
    "tf_xla": (["one.py", "tensorflow", "--mode", "xla"], "BENCH_TF", "tensorflow", {}),
    "llmc": (["llmc.py"], "BENCH_JAX", "numpy", {}),
}
STARTING = ("weft", "jax")  # whose compile times the tables compare
ONLY = {"llmc": re.compile("gpt2_[0-9]+x[0-9]+"), "weft_train": re.compile("|".join(weft_train.MODELS))}


def installed(names):
    found = []
    for name in names:
        _, variable, module, env = PEERS[name]
        python = os.environ.get(variable, sys.executable)
        try:
            ok = subprocess.run([python, "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec('{module}'))"],
                                capture_output=True, env=dict(os.environ, **env)).returncode == 0
        except OSError:
            ok = False
        ok = ok and (name != "llmc" or "BENCH_LLMC" in os.environ)
        if ok:
            found.append(name)
        else:
            how = "BENCH_LLMC=DIR, a checkout of llm.c" if name == "llmc" else f"{INSTALL}, or {variable}=PYTHON"
            print(f"{name} is left out, it is not installed here ({how})", file=sys.stderr)
    return found


def measure(peer, workload, threads, arguments, timeout):
    (script, *given), variable, _, env = PEERS[peer]
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", JAX_ENABLE_COMPILATION_CACHE="0", WEFT_CACHE="0", **env)
    command = [os.environ.get(variable, sys.executable), str(HERE / "peers" / script), *given, workload, "--threads", str(threads),
               *arguments]
    try:
        r = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"error": f"over {timeout} s"}
    lines = [x for x in r.stdout.splitlines() if x.startswith("{")]
    if r.returncode == 0 and lines:
        return json.loads(lines[-1])
    return {"error": (r.stderr.strip().splitlines() or [f"exit {r.returncode}"])[-1][:200]}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("workloads", nargs="*", help="names, or beginnings of names with a *")
    ap.add_argument("--peers", default=",".join(PEERS))
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--rounds", type=int, default=2)
    ap.add_argument("--starts", type=int, default=3, help="processes more of weft and JAX that only start")
    ap.add_argument("--steps", type=int, default=0, help="timed steps (default: the workload's own number)")
    ap.add_argument("--timeout", type=int, default=300, help="seconds of one measurement")
    ap.add_argument("--key", choices=("wall", "cpu"), default="wall",
                    help="what the table compares; cpu with --threads 1 is steady on a machine that others use")
    ap.add_argument("--out", default=str(HERE / "results" / f"{machine.short_name()}.json"))
    ap.add_argument("--docs", action="store_true", help="write docs/performance.md from all files beside --out")
    ap.add_argument("--report", action="store_true", help="measure nothing, print what --out holds")
    a = ap.parse_args()
    results = report.load(a.out)
    names = [n for n in workloads.WORKLOADS if not a.workloads or any(re.fullmatch(w.replace("*", ".*"), n) for w in a.workloads)]
    unknown = [w for w in a.workloads if not any(re.fullmatch(w.replace("*", ".*"), n) for n in workloads.WORKLOADS)]
    if unknown:
        sys.exit(f"there is no workload {', '.join(unknown)}; there are: {', '.join(workloads.WORKLOADS)}")
    if not a.report:
        peers = installed(a.peers.split(","))
        results["machine"] = machine.describe(results.get("machine"))
        for name in names:
            runs = {p: [] for p in peers if p not in ONLY or ONLY[p].fullmatch(name)}
            for _ in range(a.rounds):
                for peer in runs:
                    runs[peer].append(measure(peer, name, a.threads, ["--steps", str(a.steps)], a.timeout))
            starting = [p for p in STARTING if p in runs]
            for _ in range(a.starts):
                for peer in starting:
                    runs[peer].append(measure(peer, name, a.threads, ["--start"], a.timeout))
            report.add(results, name, a.threads, runs)
            report.save(a.out, results)
            print(report.line(results, name, a.threads, a.key), file=sys.stderr, flush=True)
    print("\n".join(report.table(results, a.threads, a.key, names)))
    if a.docs:
        (ROOT / "docs" / "performance.md").write_text(report.document(report.kept(pathlib.Path(a.out).parent)))


if __name__ == "__main__":
    main()
