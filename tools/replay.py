#!/usr/bin/env python3
"""Shows that a change to the simulator changes nothing: the JSON of `weft estimate` by two builds, over every program of tests/sim on every chip that
a table there names for it, and on two GPUs, compiled and operation by operation.

usage: replay.py BUILD BASE [--every N]     BASE: a git revision, built in build-replay. --every 10: a tenth of the pairs.
Exit status 1 if any line differs; the first of each program is printed."""
import argparse
import concurrent.futures as futures
import csv
import os
import pathlib
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/sim"
GPUS = (("A100-80GB", ()), ("H100-SXM", ("--eager",)))
BATCH = 50  # programs a process


def unpack(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for archive in sorted(DATA.glob("*/*.tar.xz")):
        with tarfile.open(archive) as t:
            for m in filter(tarfile.TarInfo.isfile, t.getmembers()):
                (folder / m.name).write_bytes(t.extractfile(m).read())


def pairs(folder):
    """(chip, options) -> programs, without doubles."""
    out = {}
    for table in sorted(DATA.rglob("*.csv")):
        with open(table) as f:
            for r in csv.DictReader(f):
                if r.get("program") and r.get("chip") and (folder / (r["program"] + ".mlir")).exists():
                    out.setdefault((r["chip"], ()), set()).add(r["program"])
    programs = {p.stem for p in folder.glob("*.mlir")}
    for chip, options in GPUS:
        out.setdefault((chip, options), set()).update(programs)
    return out


def build(revision):
    tree, out = ROOT / "build-replay/tree", ROOT / "build-replay/out"
    subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, capture_output=True)
    subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
    subprocess.run(["git", "worktree", "add", "-q", "--detach", str(tree), revision], cwd=ROOT, check=True)
    try:
        subprocess.run(["cmake", "-S", tree, "-B", out, "-G", "Ninja", "-DWEFT_TESTS=OFF"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["ninja", "-C", out, "weft_bin"], check=True, stdout=subprocess.DEVNULL)
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT)
    return out / "weft"


def ask(weft, chip, options, programs):
    """The lines, one a program; one program at a time when a batch does not answer for each."""
    p = subprocess.run([weft, "estimate", *programs, "--chip", chip, "--json", *options], capture_output=True, text=True)
    lines = p.stdout.splitlines()
    if len(programs) == 1:
        return [p.stdout + p.stderr]
    return lines if len(lines) == len(programs) else [ask(weft, chip, options, [q])[0] for q in programs]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("build")
    a.add_argument("base")
    a.add_argument("--every", type=int, default=1)
    a = a.parse_args()
    new, old = pathlib.Path(a.build).resolve() / "weft", build(a.base)
    folder = ROOT / "build-replay/programs"
    unpack(folder)
    jobs = []
    for (chip, options), programs in sorted(pairs(folder).items()):
        names = sorted(programs)[::a.every]
        jobs += [(chip, options, [str(folder / (n + ".mlir")) for n in names[i:i + BATCH]]) for i in range(0, len(names), BATCH)]

    def one(job):
        return [(job[0], *job[1], pathlib.Path(p).stem, x, y) for p, x, y in zip(job[2], ask(old, *job), ask(new, *job)) if x != y]

    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        differ = [d for ds in pool.map(one, jobs) for d in ds]
    for *what, x, y in differ[:40]:
        i = next((i for i, (c, d) in enumerate(zip(x, y)) if c != d), min(len(x), len(y)))
        print(f"{' '.join(what)}: character {i}: ...{x[max(0, i - 60):i + 40]!r} -> ...{y[max(0, i - 60):i + 40]!r}")
    print(f"replay: {len(differ)} of {sum(len(j[2]) for j in jobs)} estimates differ from {a.base}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
