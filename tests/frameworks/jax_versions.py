#!/usr/bin/env python3
"""Runs jax_checks.py under one version of JAX after another and writes the table docs/jax-versions.md.

    jax_versions.py [VERSION ...] [--venvs FOLDER] [--write]

A version gets a virtual environment of its own in FOLDER (default build/jax-versions), made by the newest Python here that
it has wheels for, with that JAX, NumPy and what jax.export wants, and nothing of weft's but the built plugin on the path. A check passes when weft gives
what that JAX's own CPU backend gives, both with eight devices. Exit status 1 when a version does worse than the table says.
Without VERSION, all of VERSIONS. A version without a Python here is said to be skipped and keeps its row of the table.
"""
import argparse
import ast
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLE = ROOT / "docs" / "jax-versions.md"

# version: Pythons that it has wheels for, the newest last
VERSIONS = {
    "0.4.35": ((3, 10), (3, 13)), "0.5.3": ((3, 10), (3, 13)), "0.6.2": ((3, 10), (3, 13)), "0.7.2": ((3, 11), (3, 13)),
    "0.8.1": ((3, 11), (3, 14)), "0.9.0": ((3, 11), (3, 14)), "0.10.0": ((3, 11), (3, 14)),
    "0.10.2": ((3, 11), (3, 14)), "0.11.0": ((3, 12), (3, 14)), "0.12.0": ((3, 12), (3, 14)),
}

HEAD = """# Versions of JAX

`tests/frameworks/jax_versions.py --write` makes this table: the programs of `tests/frameworks/jax_checks.py` ({names}) under
each version of JAX, on weft and on that JAX's own CPU backend, eight devices each. A program passes when both give the same.

| JAX | Python | pass | what differs |
|---|---|---|---|
"""


def checks():
    """Names of the checks, without importing JAX."""
    tree = ast.parse((HERE / "jax_checks.py").read_text())
    return [f.name for f in tree.body if isinstance(f, ast.FunctionDef) and f.decorator_list]


def pythons():
    """{(3, minor): path} of the Pythons here: on the path, and those of pyenv."""
    found = {}
    candidates = [pathlib.Path(sys.executable)]
    for minor in range(10, 15):
        candidates += [pathlib.Path(folder) / f"python3.{minor}" for folder in os.environ.get("PATH", "").split(os.pathsep)]
        candidates += sorted(pathlib.Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3.{minor}"))
    for path in candidates:
        if not path.exists():
            continue
        said = subprocess.run([path, "-c", "import sys, venv, ensurepip; print(*sys.version_info[:2])"], capture_output=True, text=True)
        if said.returncode == 0:
            found.setdefault(tuple(map(int, said.stdout.split())), path)
    return found


def environment(version, folder):
    """The Python of a virtual environment with that JAX, and its number; None when none here will do."""
    low, high = VERSIONS.get(version, ((3, 10), (3, 14)))
    fitting = [v for v in pythons().items() if low <= v[0] <= high]
    if not fitting:
        return None, None
    number, path = fitting[0] if (3, 11) < low else min(fitting, key=lambda v: abs(v[0][1] - 11))
    python = folder / version / "bin" / "python"
    if not python.exists():
        subprocess.run([path, "-m", "venv", folder / version], check=True)
    have = subprocess.run([python, "-c", "import jax, jaxlib, sys; print(jax.__version__, *sys.version_info[:2])"], capture_output=True, text=True)
    if have.returncode or not have.stdout.startswith(version):
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"jax=={version}",
                        f"jaxlib=={version}", "numpy", "flatbuffers", "absl-py"], check=True)
    return python, ".".join(map(str, number))


def run(python, platform, out, wanted):
    """{check: line} of jax_checks.py; one that ends the process counts as a crash, the rest run in another."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "WEFT_"))}
    env |= {"JAX_PLATFORMS": platform, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "TF_CPP_MIN_LOG_LEVEL": "3"}
    if platform == "weft":
        build = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build"))
        env |= {"PYTHONPATH": str(ROOT / "python"), "WEFT_DEVICE": "cpu:8", "WEFT_PLUGIN": str(build / "libpjrt_weft.so")}
    lines, todo = {}, list(wanted)
    while todo:
        out.unlink(missing_ok=True)
        try:
            code = subprocess.run([python, HERE / "jax_checks.py", out, *todo], env=env, capture_output=True, text=True,
                                  timeout=600)
            end = f"ends the process ({code.returncode}): " + " ".join(code.stderr.strip().splitlines()[-1:])[:300]
        except subprocess.TimeoutExpired:
            end = "does not end within 600 s"
        began = None
        for line in map(json.loads, out.read_text().splitlines() if out.exists() else []):
            began = line["check"] if "begun" in line else None
            if "begun" not in line:
                lines[line["check"]] = line
        if began is None and not any(c in lines for c in todo):
            began = todo[0]
            for name in todo:
                lines[name] = {"check": name, "error": end}
        elif began:
            lines[began] = {"check": began, "error": end}
        todo = [c for c in todo if c not in lines]
    return lines


def differs(got, want):
    """What is wrong with weft's line of a check; None when nothing is, or when that JAX itself cannot do it."""
    if "error" in want:
        return None
    if "error" in got:
        return got["error"]
    if [leaf[:2] for leaf in got["result"]] != [leaf[:2] for leaf in want["result"]]:
        return f"results {[leaf[:2] for leaf in got['result']]}, JAX's {[leaf[:2] for leaf in want['result']]}"
    for (kind, _, a), (_, _, b) in zip(got["result"], want["result"]):
        tolerance = 2e-5 if kind in ("float64", "complex64") else 0
        if not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"differs by {np.max(np.abs(np.subtract(a, b)))}"
    return None


def rows():
    """{version: row} of the table as it stands."""
    text = TABLE.read_text() if TABLE.exists() else ""
    return {m.group(1): m.group(0) for m in re.finditer(r"^\| ([0-9.]+) \|.*$", text, re.M)}


def passing(row):
    return int(row.split("|")[3].split()[0])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("versions", nargs="*")
    p.add_argument("--venvs", type=pathlib.Path, default=ROOT / "build" / "jax-versions")
    p.add_argument("--only", nargs="*", help="checks; the table stays as it is")
    p.add_argument("--write", action="store_true", help="the table")
    args = p.parse_args()
    args.venvs.mkdir(parents=True, exist_ok=True)
    table, worse, wanted = rows(), [], args.only or checks()
    for version in args.versions or VERSIONS:
        python, number = environment(version, args.venvs)
        if not python:
            print(f"{version:9} skipped: no Python of {VERSIONS[version]} here", flush=True)
            continue
        want = run(python, "cpu", args.venvs / f"{version}-cpu.jsonl", wanted)
        got = run(python, "weft", args.venvs / f"{version}-weft.jsonl", wanted)
        bad = {c: text for c in wanted if (text := differs(got[c], want[c]))}
        print(f"{version:9} {len(wanted) - len(bad)} of {len(wanted)} pass", flush=True)
        for name, text in bad.items():
            print(f"    {name}: {text}", flush=True)
        if not args.only:
            row = f"| {version} | {number} | {len(wanted) - len(bad)} of {len(wanted)} | {', '.join(bad) or '-'} |"
            if version in table and passing(row) < passing(table[version]):
                worse.append(version)
            table[version] = row
    if args.write:
        order = sorted(table, key=lambda v: [int(x) for x in v.split(".")])
        names = ", ".join(c.replace("_", " ") for c in checks())
        TABLE.write_text(HEAD.format(names=names) + "\n".join(table[v] for v in order) + "\n")
    sys.exit(f"worse than the table: {', '.join(worse)}" if worse and not args.write else 0)


if __name__ == "__main__":
    main()
