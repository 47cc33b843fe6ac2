#!/usr/bin/env python3
"""Runs JAX's own tests on weft and on JAX's CPU backend and counts what passes on both.

    jax_suite.py --jax CHECKOUT [--platform cpu|weft|both] [--files lax_test ...] [--sample N | --about N]
                 [--match TEXT] [--cases N]
    jax_suite.py --jax CHECKOUT --report            # table from the stored results
    jax_suite.py --jax CHECKOUT --ratchet [--write] # compares with (or writes) jax_ratchet.json

CHECKOUT is a directory with `tests/`, `conftest.py` and `pyproject.toml` of the jax release in requirements.txt; `git
archive TAG tests conftest.py pyproject.toml jax/_src/hypothesis_test_util.py jax/_src/pallas | tar x` makes one, with what tests take
from JAX's sources and its wheel leaves out. Nothing of it is committed here. All `*_test.py` in it are run but those in
ELSEWHERE, which need what JAX's CPU backend is not. Some need packages beside JAX (hypothesis, cloudpickle, filelock,
flatbuffers, mpmath, matplotlib, portpicker); a file that cannot be loaded says so and is not counted.

Tests that JAX ties to the name "cpu" are skipped on weft and do not count; `--dut cpu --again skipped` runs them.
Tests run in shards, each in its own process, which appends one line for each finished test to a file. When a process dies
the test that was running counts as "crash" and the rest of the shard runs in a new process; a test over --test-timeout
counts as "timeout". Results are kept in --results (one JSON file for each platform and test file) and updated by
later runs, so that failures can be run again alone (--again failed).
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
# Test files that do not run on JAX's CPU backend, by the first pattern that matches, and why.
ELSEWHERE = [
    ("multiprocess*", "several processes, started by JAX's own runner"),
    ("mosaic/*", "CUDA or a TPU: kernels of Mosaic"),
    ("pallas/gpu_pallas_interpret*", None),
    ("pallas/tpu_pallas_interpret*", None),
    ("pallas/gpu_*", "CUDA: kernels of Triton"),
    ("pallas/lax_lowerings/gpu/*", "CUDA: kernels of Mosaic"),
    ("pallas/*mgpu_*", "CUDA: kernels of Mosaic"),
    ("pallas/mosaic_gpu*", "CUDA: kernels of Mosaic"),
    ("pallas/triton_*", "CUDA: kernels of Triton"),
    ("pallas/tpu_*", "a TPU: kernels of Mosaic"),
    ("mock_gpu*", "CUDA"),
    ("cudnn_*", "CUDA"),
    ("gpu_*", "CUDA"),
    ("magma_*", "CUDA"),
    ("fused_attention_stablehlo*", "CUDA: attention of cuDNN"),
    ("scaled_matmul_stablehlo*", "CUDA: products of cuDNN"),
    ("pgle_*", "CUDA: schedules from GPU profiles"),
    ("local_wheel_smoke*", "a build of JAX from its sources"),
]
RATCHET = HERE / "jax_ratchet.json"

# Loaded into pytest with -p: writes what happened as it happens.
RECORDER = '''
import faulthandler, os, pytest
out = open(os.environ["WEFT_RECORD"], "a", buffering=1)
limit = float(os.environ["WEFT_TEST_TIMEOUT"])
ids = os.environ["WEFT_RECORD"] + ".ids"
log = open(os.environ["WEFT_RECORD"] + ".trace", "a")

def name(nodeid):  # some have line breaks in them
    return nodeid.replace("\\r", "\\\\r").replace("\\n", "\\\\n").replace("\\t", " ")

def pytest_configure(config):
    from absl import flags
    flags.FLAGS.mark_as_parsed()  # by absl's own runner they are; its temporary folders ask for a flag
    import jax._src.pallas  # what tests take from JAX's sources that its wheel leaves out
    for package in (jax._src, jax._src.pallas):
        package.__path__.append(os.path.join(os.getcwd(), *package.__name__.split(".")))
    if os.environ.get("WEFT_TEST_DUT"):
        from jax._src import test_util
        test_util._TEST_DUT._set(os.environ["WEFT_TEST_DUT"])
        test_util.stablehlo_version_at_least = lambda version: True  # as it is of that; of plugins it says no to any

def pytest_collection_modifyitems(items):  # by name: as arguments, names with brackets in them are not found
    if os.path.exists(ids):
        with open(ids) as chosen:
            wanted = set(chosen.read().splitlines())
        items[:] = [item for item in items if name(item.nodeid) in wanted]
    else:  # the first run of a file: it chooses
        about, every = int(os.environ["WEFT_ABOUT"]), int(os.environ["WEFT_EVERY"])
        items[:] = items[::every or max(1, round(len(items) / about) if about else 1)]
        with open(ids, "w") as chosen:
            chosen.write("\\n".join(name(item.nodeid) for item in items))

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart(nodeid, location):
    out.write("start\\t" + name(nodeid) + "\\n")
    faulthandler.dump_traceback_later(limit, exit=True, file=log)

def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        text = ""
        if report.outcome == "failed":
            crash = getattr(report.longrepr, "reprcrash", None)
            text = (crash.message if crash else str(report.longrepr))[:600]
        elif report.outcome == "skipped" and isinstance(report.longrepr, tuple):
            text = str(report.longrepr[2])[:100]
        outcome = "error" if report.outcome == "failed" and report.when != "call" else report.outcome
        out.write("done\\t" + name(report.nodeid) + "\\t" + outcome + "\\t" + text.replace("\\n", "\\\\n").replace("\\t", " ") + "\\n")

def pytest_runtest_logfinish(nodeid, location):
    faulthandler.cancel_dump_traceback_later()
    out.write("finish\\t" + name(nodeid) + "\\n")
'''


def elsewhere(name):
    """Why a test file does not run on JAX's CPU backend, or None."""
    return next((why for pattern, why in ELSEWHERE if fnmatch.fnmatch(name, pattern)), None)


def found(checkout, others=False):
    """Names of the test files that run on JAX's CPU backend, or of the others."""
    tests = pathlib.Path(checkout) / "tests"
    names = sorted(str(path.relative_to(tests).with_suffix("")) for path in tests.rglob("*_test.py"))
    return [name for name in names if bool(elsewhere(name)) == others]


# A process that has JAX and pytest loaded forks for each shard: importing them takes longer than most files' tests. JAX
# starts no backend before its first use, which is in the fork.
LOADED = """
import json, os, sys
import jax, jax._src.test_util, jax.scipy.stats, numpy, pytest, scipy.linalg, scipy.special, scipy.stats
sys.argv = ["pytest"]
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        os.environ.update(job["env"])
        log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0), os.dup2(log, 1), os.dup2(log, 2)
        code = pytest.main(job["argv"])
        sys.stdout.flush()
        os._exit(code)  # as a test runner's end: what a destructor does at exit is no test's outcome
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Loaded:
    """Runs pytest in forks of a process that has loaded JAX, one at a time for each thread."""

    def __init__(self, args):
        self.args, self.own = args, threading.local()

    def run(self, argv, env, log, seconds):
        """Exit code; negative where a signal ended the process or the time was over."""
        if not hasattr(self.own, "process"):
            self.own.process = subprocess.Popen([sys.executable, "-X", "faulthandler", "-c", LOADED], cwd=self.args.jax,
                                                env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process = self.own.process
        process.stdin.write(json.dumps({"argv": argv, "env": env, "log": log}) + "\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        end = threading.Timer(seconds, os.killpg, [child, signal.SIGKILL])
        end.start()
        code = int(process.stdout.readline())
        late = not end.is_alive()
        end.cancel()
        return -1 if late else code


def environment(args, platform):
    env = dict(os.environ)
    env["JAX_PLATFORMS"] = platform
    env["PYTHONPATH"] = os.pathsep.join([args.plugin_dir, str(HERE.parent.parent / "python"), env.get("PYTHONPATH", "")])
    env["WEFT_TEST_TIMEOUT"] = str(args.test_timeout)
    env["JAX_NUM_GENERATED_CASES"] = str(args.cases)
    env.setdefault("JAX_ENABLE_CHECKS", "false")
    if platform == "weft":
        env["WEFT_DEVICE"] = args.device
        env["WEFT_TEST_DUT"] = args.dut
    return env


def collect(args, name, platform):
    """Ids of the tests in a file, or why there are none (a module that this environment lacks, say)."""
    cmd = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider",
           f"tests/{name}.py"]
    run = subprocess.run(cmd, cwd=args.jax, env=environment(args, platform), capture_output=True, text=True, timeout=600)
    ids = [line for line in run.stdout.splitlines() if "::" in line]
    return ids, "" if ids else why_none(run.stdout + run.stderr)


def why_none(output):
    lines = output.splitlines()
    said = [line[1:].strip() for line in lines if line.startswith("E ")]  # pytest's mark of an exception's text
    return "; ".join(said) or " ".join(lines[-2:])


def run_shard(args, platform, name, ids):
    """{id: [outcome, text]}, and why there is none. Without `ids` the first process chooses as --about says."""
    results, todo, why = {}, ids, ""
    while todo or todo is None:
        with tempfile.NamedTemporaryFile("w", suffix=".record", delete=False) as record:
            pass
        chosen = pathlib.Path(record.name + ".ids")
        if todo is not None:
            chosen.write_text("\n".join(todo))
        env = environment(args, platform)
        env["WEFT_RECORD"] = record.name
        env["WEFT_ABOUT"], env["WEFT_EVERY"] = str(args.about or 0), str(args.sample or 0)
        argv = ["-s", "-q", "--no-header", "--tb=short", "-p", "weft_recorder", "-p", "no:cacheprovider",
                f"tests/{name}.py"]
        code = args.loaded.run(argv, env, record.name + ".log", args.shard_timeout)
        if todo is None:
            todo = chosen.read_text().split("\n") if chosen.exists() else []
            todo = [t for t in todo if t]
            why = "" if todo else why_none(pathlib.Path(record.name + ".log").read_text(errors="replace"))
        running, finished = None, set()
        for line in open(record.name, newline="\n"):
            kind, *rest = line.rstrip("\n").split("\t")
            if kind == "start":
                running = rest[0]
            elif kind == "done":
                results[rest[0]] = [rest[1], rest[2] if len(rest) > 2 else ""]
            elif kind == "finish":
                finished.add(rest[0])
                running = None
        trace = pathlib.Path(record.name + ".trace")
        timed_out = code == -1 or (trace.exists() and "Timeout" in trace.read_text(errors="replace"))
        tail = pathlib.Path(record.name + ".log").read_text(errors="replace")[-3000:]
        if running is not None:
            results[running] = ["timeout" if timed_out else "crash", tail[-1500:]]
            finished.add(running)
        elif not finished and todo:  # died before the first test
            for test in todo:
                results.setdefault(test, ["crash", tail])
            finished.update(todo)
        for suffix in ("", ".ids", ".trace", ".log"):
            pathlib.Path(record.name + suffix).unlink(missing_ok=True)
        rest_ids = [t for t in todo if t not in finished]
        if code in (0, 1, 5) and running is None:
            for test in rest_ids:
                results.setdefault(test, ["missing", ""])
            break
        todo = rest_ids
    return results, why


def store(args, platform, name):
    return pathlib.Path(args.results) / f"{platform}-{name.replace('/', '-')}.json"


def load(args, platform, name):
    path = store(args, platform, name)
    return json.loads(path.read_text()) if path.exists() else {}


def run_file(args, platform, name):
    old = load(args, platform, name)
    if args.again:
        want = {"failed": ("failed", "error", "crash", "timeout", "missing")}.get(args.again, (args.again,))
        ids = [t for t, r in old.items() if r[0] in want]
        if platform == "weft":
            cpu = load(args, "cpu", name)
            ids = [t for t in ids if cpu.get(t, ["passed"])[0] == "passed"]
    elif platform == "cpu" and args.not_passing:
        ids = [t for t, r in load(args, "weft", name).items() if r[0] not in ("passed", "skipped")]
    elif (args.about or args.sample) and not (args.match or args.new):
        ids = None
    else:
        ids, why = collect(args, name, platform)
        if not ids:
            print(f"{platform:5} {name:24} skipped, nothing collected: {why[:300]}", flush=True)
            return
        ids = ids[::args.sample or max(1, round(len(ids) / args.about) if args.about else 1)]
        if platform == "weft" and not args.all:  # what does not pass on the CPU is not counted
            cpu = load(args, "cpu", name)
            ids = [t for t in ids if cpu.get(t, ["passed"])[0] == "passed"]
    if args.match and ids:
        ids = [t for t in ids if args.match in t]
    if args.new and ids:
        ids = [t for t in ids if t not in old]
    shards = [None] if ids is None else [ids[i:i + args.shard] for i in range(0, len(ids), args.shard)]
    start, ran = time.time(), collections.Counter()
    for i, (result, why) in enumerate(args.pool.map(lambda s: run_shard(args, platform, name, s), shards)):
        if not result:
            print(f"{platform:5} {name:24} skipped, nothing collected: {why[:300]}", flush=True)
            continue
        old.update(result)
        ran.update(r[0] for r in result.values())
        path = store(args, platform, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(old, indent=0))
        if args.verbose:
            print(f"  {platform} {name} {i + 1}/{len(shards)} {dict(ran)} {time.time() - start:.0f}s", flush=True)
    print(f"{platform:5} {name:24} {dict(ran)} {time.time() - start:.0f} s", flush=True)


def summary(args):
    """{file: {...counts}} of tests that pass on the CPU and were run on weft."""
    table = {}
    for name in args.files:
        cpu, weft = load(args, "cpu", name), load(args, "weft", name)
        # Where the CPU was not run (--not-passing), what weft skips is taken to be skipped there, the rest to pass.
        both = [t for t, r in weft.items()
                if cpu.get(t, ["skipped" if r[0] == "skipped" else "passed"])[0] == "passed"]
        if not both:
            continue
        count = collections.Counter(weft[t][0] for t in both)
        table[name] = {"passed_on_cpu": len(both), "passed": count["passed"], "skipped": count["skipped"],
                       "failed": count["failed"] + count["error"] + count["missing"], "timeout": count["timeout"],
                       "crash": count["crash"]}
        differs = sorted(t.split("::", 1)[1] for t in both if weft[t][0] not in ("passed", "skipped"))
        if differs:
            table[name]["differs"] = differs
    return table


def skipped(args):
    """{file: why} of files whose tests are all skipped, on weft and, where it was run, on the CPU."""
    found = {}
    for name in args.files:
        results = [*load(args, "weft", name).values(), *load(args, "cpu", name).values()]
        if results and all(r[0] == "skipped" for r in results):
            found[name] = collections.Counter(r[1].removeprefix("Skipped: ") for r in results).most_common(1)[0][0]
    return found


def print_table(table):
    print(f"{'file':24} {'on CPU':>7} {'on weft':>8} {'':>7} {'failed':>7} {'skipped':>8} {'timeout':>8} {'crash':>6}")
    total = collections.Counter()
    for name, row in table.items():
        total.update({k: v for k, v in row.items() if k != "differs"})
    for name, row in [*table.items(), ("all", total)]:
        share = row["passed"] / max(row["passed_on_cpu"] - row["skipped"], 1)
        print(f"{name:24} {row['passed_on_cpu']:7} {row['passed']:8} {share:7.1%} {row['failed']:7} {row['skipped']:8} "
              f"{row['timeout']:8} {row['crash']:6}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jax", required=True)
    p.add_argument("--platform", default="both", choices=["cpu", "weft", "both"])
    p.add_argument("--files", nargs="*", help="as lax_test or pallas/ops_test; all that run on the CPU without it")
    p.add_argument("--device", default=os.environ.get("WEFT_DEVICE", "cpu"))
    p.add_argument("--dut", default="", help="what JAX's tests take weft for: with `cpu` those tied to that name run, too")
    p.add_argument("--results", default=str(HERE.parent.parent / "build" / "jax_suite"))
    p.add_argument("--sample", type=int, help="every N-th test")
    p.add_argument("--about", type=int, help="of each file about N tests, evenly spread")
    p.add_argument("--cases", type=int, default=3, help="of each generated family of tests (JAX_NUM_GENERATED_CASES)")
    p.add_argument("--match")
    p.add_argument("--new", action="store_true", help="only tests without a stored result")
    p.add_argument("--again", help="only tests with this stored outcome: failed, crash, timeout, skipped")
    p.add_argument("--not-passing", action="store_true", help="on the CPU, only tests that do not pass on weft")
    p.add_argument("--all", action="store_true", help="on weft, also those that do not pass on the CPU")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--shard", type=int, default=250)
    p.add_argument("--test-timeout", type=float, default=120)
    p.add_argument("--shard-timeout", type=float, default=3000)
    p.add_argument("--report", action="store_true")
    p.add_argument("--failures", action="store_true", help="list what fails on weft, by message")
    p.add_argument("--ratchet", action="store_true")
    p.add_argument("--write", action="store_true")
    p.add_argument("--verbose", "-v", action="store_true")
    args = p.parse_args()
    args.files = args.files or found(args.jax)
    args.files = [f.removeprefix("tests/").removesuffix(".py") for f in args.files]
    with tempfile.TemporaryDirectory() as plugin_dir:
        args.plugin_dir = plugin_dir
        (pathlib.Path(plugin_dir) / "weft_recorder.py").write_text(RECORDER)
        if not (args.report or args.failures or args.ratchet):
            for platform in ["cpu", "weft"] if args.platform == "both" else [args.platform]:
                args.loaded = Loaded(args)
                with concurrent.futures.ThreadPoolExecutor(args.jobs) as args.pool:
                    for name in args.files:
                        run_file(args, platform, name)
    if args.failures:
        groups = collections.defaultdict(list)
        for name in args.files:
            cpu, weft = load(args, "cpu", name), load(args, "weft", name)
            for test, (outcome, text) in weft.items():
                if outcome not in ("passed", "skipped") and cpu.get(test, ["passed"])[0] == "passed":
                    first = text.replace("\\n", " ")[:150] if outcome in ("failed", "error") else outcome
                    groups[first].append(test)
        for text, tests in sorted(groups.items(), key=lambda g: -len(g[1])):
            print(f"{len(tests):5} {text}\n        {tests[0]}")
    table = summary(args)
    if args.report or not (args.failures or args.ratchet):
        print_table(table)
    if args.ratchet:
        ratchet = json.loads(RATCHET.read_text())
        old = ratchet["files"]
        worse = [f"{n}: {r['passed']} pass, {old[n]['passed']} in the ratchet" for n, r in table.items()
                 if n in old and r["passed"] < old[n]["passed"] and r["passed_on_cpu"] >= old[n]["passed_on_cpu"]]
        print("\n".join(worse) or "ratchet: nothing got worse")
        if args.write:
            for name, row in table.items():
                old[name] = dict(row, sample=f"about {args.about}" if args.about else f"every {args.sample or 1}")
            ratchet["files"] = dict(sorted(old.items()))
            none = ratchet.get("skipped", {}) | skipped(args)
            ratchet["skipped"] = {name: why for name, why in sorted(none.items()) if name not in old}
            ratchet["not_counted"] = [name for name in found(args.jax) if name not in old and name not in none]
            ratchet["elsewhere"] = {name: elsewhere(name) for name in found(args.jax, True)}
            RATCHET.write_text(json.dumps(ratchet, indent=1) + "\n")
        elif worse:
            sys.exit(1)


if __name__ == "__main__":
    main()
