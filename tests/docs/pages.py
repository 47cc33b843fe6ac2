#!/usr/bin/env python3
"""Runs the commands and the Python of a documentation page, in a folder of its own with the files that pages speak of.

    pages.py [--keep DIR] [--long] [--show] PAGE.md ...

A fence without a language is for the shell and ends with status 0; where its lines begin with `$ `, those are commands, and what follows each is what they print:
its words are looked for in what they did print, numbers within a tenth (`...` stands for any lines). Python of a page is one program, or, where it begins
with `# NAME.py`, that file. Comments above a fence say what a reader does not need to know:

    <!-- run: no, WHY -->              it is not run
    <!-- run: A => B; C => D -->       B is run where A stands: fewer steps, a smaller network
    <!-- run: long; A => B -->         only with --long
    <!-- first:
    LINES -->                          run before it, in its language
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import files  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")).resolve()
FENCE = re.compile(r"((?:<!--.*?-->\s*\n)*)^```(\w*)\n(.*?)^```$", re.S | re.M)
COMMENT = re.compile(r"<!--\s*(run|first):\s*(.*?)\s*-->", re.S)
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


class Block(typing.NamedTuple):
    line: int
    language: str
    text: str
    first: str
    run: str  # "", "long", or "no"


def blocks(text):
    for m in FENCE.finditer(text):
        notes, language, body = m.groups()
        run = first = ""
        for kind, value in COMMENT.findall(notes):
            if kind == "first":
                first += value + "\n"
                continue
            if value.split(",")[0] == "no":
                run = "no"
                continue
            for change in re.split(r";\s+(?=[^;]* => )", value):
                if change == "long":
                    run = "long"
                else:
                    old, new = change.split(" => ")
                    if old not in body:
                        raise ValueError(f"'{old}' is not in the fence: {body[:60]}")
                    body = body.replace(old, new)
        yield Block(text.count("\n", 0, m.start(2)) + 1, language, body, first, run)


def environment(folder):
    (folder / ".bin").mkdir(exist_ok=True)
    for name in ("python", "python3"):
        link = folder / ".bin" / name
        if not link.exists():
            link.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
            link.chmod(0o755)
    path = f"{BUILD}:{folder / '.bin'}:{os.environ['PATH']}"
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "JAX_"))}
    return dict(env, PATH=path, OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", PYTHONPATH=str(ROOT / "python"), WEFT_PLUGIN=str(BUILD / "libpjrt_weft.so"), WEFT_RUNS=str(folder / "runs.db"),
                XDG_CACHE_HOME=os.environ.get("XDG_CACHE_HOME", str(folder / ".cache")))


def finish(command, folder, env, what):
    r = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=600)
    if r.returncode:
        raise AssertionError(f"{what} ended with {r.returncode}:\n{r.stdout[-3000:]}")
    return r.stdout


def near(want, got):
    """The words of a line, up to its "...", and its numbers within a tenth."""
    words, printed = (NUMBER.sub("#", line).split() for line in (want.removesuffix("..."), got))
    if words != (printed[:len(words)] if want.endswith("...") else printed):
        return False
    pairs = zip(NUMBER.findall(want), NUMBER.findall(got))
    return all(abs(float(a.replace(",", "")) - float(b.replace(",", ""))) <= 0.1 * abs(float(a.replace(",", ""))) for a, b in pairs)


def session(block, folder, env, where):
    """A fence of commands with what they print."""
    commands = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif line.strip() and line.strip() != "...":
            commands[-1][1].append(line)
    out, before = "", []
    for command, printed in commands:
        if command.startswith(("export ", "unset ")):
            before.append(command)
            continue
        # some of the commands show how something fails
        got = finish(["bash", "-c", "\n".join([*before, command + " || [ $? = 1 ]"])], folder, env, f"{where}: $ {command}")
        lines = [x.strip() for x in got.splitlines()]
        for want in printed:
            if not any(near(want.strip(), x) for x in lines):
                raise AssertionError(f"{where}: $ {command}\nprints no line like\n{want}\nbut\n{got[-4000:]}")
        out += got
    return out


class Python:
    """The Python of a page: one process, that is given fence after fence."""
    LOOP = "import json, sys\nnames = {'__name__': '__main__'}\nfor line in sys.stdin:\n    exec(compile(json.loads(line), 'page', 'exec'), names)\n    print(flush=True)\n    print('done', flush=True)"

    def __init__(self, folder, env):
        self.process = subprocess.Popen([sys.executable, "-c", self.LOOP], cwd=folder, env=dict(env, JAX_PLATFORMS="weft"), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, text, where):
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        out = ""
        for line in self.process.stdout:
            if line == "done\n":
                return out
            out += line
        raise AssertionError(f"{where}: {out[-3000:]}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def run_page(path, folder, long=False, show=False):
    env, python = environment(folder), None
    env["WEFT_DATASETS"] = str(files.make(folder, env))
    try:
        for b in blocks(path.read_text()):
            where, out = f"{path.name}:{b.line}", ""
            if b.run == "no" or (b.run == "long" and not long):
                continue
            name = re.match(r"# (\w+\.py)\n", b.text)
            if b.language == "python" and name:
                (folder / name[1]).write_text(b.first + b.text)
            elif b.language == "python":
                python = python or Python(folder, env)
                out = python.run(b.first + b.text, where)
            elif b.language == "" and b.text.startswith("$ "):
                out = session(b, folder, env, where)
            elif b.language == "":
                out = finish(["bash", "-exc", b.first + b.text], folder, env, where)
            if show and out:
                print(f"== {where}\n{out}", flush=True)
    finally:
        if python:
            python.close()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("pages", nargs="+", type=pathlib.Path)
    p.add_argument("--keep", type=pathlib.Path, help="the folder to run in")
    p.add_argument("--long", action="store_true", help="the fences that take minutes, too")
    p.add_argument("--show", action="store_true", help="what is printed")
    a = p.parse_args()
    for page in a.pages:
        with tempfile.TemporaryDirectory() as folder:
            folder = a.keep or pathlib.Path(folder)
            folder.mkdir(parents=True, exist_ok=True)
            run_page(page, folder.resolve(), a.long, a.show)


if __name__ == "__main__":
    main()
