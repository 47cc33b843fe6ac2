#!/usr/bin/env python3
"""Runs JAX's own tests on weft and on JAX's CPU backend and counts what passes on both.

    jax_suite.py --jax CHECKOUT [--platform cpu|weft|both] [--files lax_test ...] [--sample N | --about N]
                 [--match TEXT]
    jax_suite.py --jax CHECKOUT --report            # table from the stored results
    jax_suite.py --jax CHECKOUT --ratchet [--write] # compares with (or writes) jax_ratchet.json

CHECKOUT is a directory with `tests/`, `conftest.py` and `pyproject.toml` of the jax release in requirements.txt; `git
archive TAG tests conftest.py pyproject.toml | tar x` makes one. Nothing of it is committed here.

Tests that JAX ties to the name "cpu" are skipped on weft and do not count; `--dut cpu --again skipped` runs them.
Tests run in shards, each in its own process, which appends one line for each finished test to a file. When a process dies
the test that was running counts as "crash" and the rest of the shard runs in a new process; a test over --test-timeout
counts as "timeout". Results are kept in --results (one JSON file for each platform and test file) and updated by
later runs, so that failures can be run again alone (--again failed).
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
FILES = ["lax_test", "lax_numpy_test", "lax_control_flow_test", "api_test", "nn_test", "random_lax_test", "linalg_test",
         "fft_test", "pjit_test", "shard_map_test", "pmap_test"]
RATCHET = HERE / "jax_ratchet.json"

# Loaded into pytest with -p: writes what happened as it happens.
RECORDER = '''
import faulthandler, os, pytest
out = open(os.environ["WEFT_RECORD"], "a", buffering=1)
limit = float(os.environ["WEFT_TEST_TIMEOUT"])
with open(os.environ["WEFT_RECORD"] + ".ids") as ids:
    wanted = set(ids.read().splitlines())
log = open(os.environ["WEFT_RECORD"] + ".trace", "a")

def pytest_configure(config):
    if os.environ.get("WEFT_TEST_DUT"):
        from jax._src import test_util
        test_util._TEST_DUT._set(os.environ["WEFT_TEST_DUT"])

def pytest_collection_modifyitems(items):  # by name: as arguments, names with brackets in them are not found
    items[:] = [item for item in items if item.nodeid in wanted]

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logstart(nodeid, location):
    out.write("start\\t" + nodeid + "\\n")
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
        out.write("done\\t" + report.nodeid + "\\t" + outcome + "\\t" + text.replace("\\n", "\\\\n").replace("\\t", " ") + "\\n")

def pytest_runtest_logfinish(nodeid, location):
    faulthandler.cancel_dump_traceback_later()
    out.write("finish\\t" + nodeid + "\\n")
'''


def environment(args, platform):
    env = dict(os.environ)
    env["JAX_PLATFORMS"] = platform
    env["PYTHONPATH"] = os.pathsep.join([args.plugin_dir, str(HERE.parent.parent / "python"), env.get("PYTHONPATH", "")])
    env["WEFT_TEST_TIMEOUT"] = str(args.test_timeout)
    env.setdefault("JAX_ENABLE_CHECKS", "false")
    if platform == "weft":
        env["WEFT_DEVICE"] = args.device
        env["WEFT_TEST_DUT"] = args.dut
    return env


def collect(args, name, platform):
    """Ids of the tests in a file, or why there are none (a module that this environment lacks, say)."""
    cmd = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", f"tests/{name}.py"]
    run = subprocess.run(cmd, cwd=args.jax, env=environment(args, platform), capture_output=True, text=True, timeout=600)
    ids = [line for line in run.stdout.splitlines() if "::" in line]
    if ids:
        return ids, ""
    output = (run.stdout + run.stderr).splitlines()
    said = [line[1:].strip() for line in output if line.startswith("E ")]  # pytest's mark of an exception's text
    return [], "; ".join(said) or " ".join(output[-2:]) or f"exit code {run.returncode}"


def run_shard(args, platform, ids):
    """{id: [outcome, text]}"""
    results = {}
    todo = list(ids)
    while todo:
        with tempfile.NamedTemporaryFile("w", suffix=".record", delete=False) as record:
            pass
        pathlib.Path(record.name + ".ids").write_text("\n".join(todo))
        env = environment(args, platform)
        env["WEFT_RECORD"] = record.name
        cmd = [sys.executable, "-X", "faulthandler", "-m", "pytest", "-s", "-q", "--no-header", "--tb=short", "-p",
               "weft_recorder", "-p", "no:cacheprovider", todo[0].split("::")[0]]
        with open(record.name + ".log", "w") as log:
            try:
                code = subprocess.run(cmd, cwd=args.jax, env=env, stdout=log, stderr=subprocess.STDOUT,
                                      timeout=args.shard_timeout).returncode
            except subprocess.TimeoutExpired:
                code = -1
        running, finished = None, set()
        for line in open(record.name):
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
    return results


def store(args, platform, name):
    return pathlib.Path(args.results) / f"{platform}-{name}.json"


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
    else:
        ids, why = collect(args, name, platform)
        if not ids:
            print(f"{platform:5} {name:24} skipped, nothing collected: {why[:300]}", flush=True)
            return
        ids = ids[::args.sample or max(1, round(len(ids) / args.about) if args.about else 1)]
        if platform == "cpu" and args.not_passing:
            weft = load(args, "weft", name)
            ids = [t for t in ids if t in weft and weft[t][0] != "passed"]
        if platform == "weft" and not args.all:  # what does not pass on the CPU is not counted
            cpu = load(args, "cpu", name)
            ids = [t for t in ids if cpu.get(t, ["passed"])[0] == "passed"]
    if args.match:
        ids = [t for t in ids if args.match in t]
    if args.new:
        ids = [t for t in ids if t not in old]
    shards = [ids[i:i + args.shard] for i in range(0, len(ids), args.shard)]
    start = time.time()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for i, result in enumerate(pool.map(lambda s: run_shard(args, platform, s), shards)):
            old.update(result)
            path = store(args, platform, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(old, indent=0))
            if args.verbose:
                count = collections.Counter(r[0] for r in old.values())
                print(f"  {platform} {name} {i + 1}/{len(shards)} {dict(count)} {time.time() - start:.0f}s", flush=True)
    count = collections.Counter(old[t][0] for t in ids if t in old)
    print(f"{platform:5} {name:24} {dict(count)} {time.time() - start:.0f} s", flush=True)


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
    return table


def print_table(table):
    print(f"{'file':24} {'on CPU':>7} {'on weft':>8} {'':>7} {'failed':>7} {'skipped':>8} {'timeout':>8} {'crash':>6}")
    total = collections.Counter()
    for name, row in table.items():
        total.update(row)
    for name, row in [*table.items(), ("all", total)]:
        share = row["passed"] / max(row["passed_on_cpu"] - row["skipped"], 1)
        print(f"{name:24} {row['passed_on_cpu']:7} {row['passed']:8} {share:7.1%} {row['failed']:7} {row['skipped']:8} "
              f"{row['timeout']:8} {row['crash']:6}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jax", required=True)
    p.add_argument("--platform", default="both", choices=["cpu", "weft", "both"])
    p.add_argument("--files", nargs="*", default=FILES)
    p.add_argument("--device", default=os.environ.get("WEFT_DEVICE", "cpu"))
    p.add_argument("--dut", default="", help="what JAX's tests take weft for: with `cpu` those tied to that name run, too")
    p.add_argument("--results", default=str(HERE.parent.parent / "build" / "jax_suite"))
    p.add_argument("--sample", type=int, help="every N-th test")
    p.add_argument("--about", type=int, help="of each file about N tests, evenly spread")
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
    args.files = [pathlib.Path(f).stem for f in args.files]
    with tempfile.TemporaryDirectory() as plugin_dir:
        args.plugin_dir = plugin_dir
        (pathlib.Path(plugin_dir) / "weft_recorder.py").write_text(RECORDER)
        if not (args.report or args.failures or args.ratchet):
            for platform in ["cpu", "weft"] if args.platform == "both" else [args.platform]:
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
        old = json.loads(RATCHET.read_text()) if RATCHET.exists() else {}
        worse = [f"{n}: {r['passed']} pass, {old[n]['passed']} in the ratchet" for n, r in table.items()
                 if n in old and r["passed"] < old[n]["passed"] and r["passed_on_cpu"] >= old[n]["passed_on_cpu"]]
        print("\n".join(worse) or "ratchet: nothing got worse")
        if args.write:
            old.update(table)
            RATCHET.write_text(json.dumps(old, indent=1) + "\n")
        elif worse:
            sys.exit(1)


if __name__ == "__main__":
    main()
