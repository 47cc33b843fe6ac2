#!/usr/bin/env python3
"""Who may include whose header, and who may call whom. The table is the truth; the build fails on what is not in it.

usage: layers.py [--objects BUILD]     with BUILD, what its objects really call (nm) as well, and circles of files that call each other
       layers.py --closure FOLDER      the folders that FOLDER is linked with, with ; between

A folder always may include itself and base. When an arrow must change, change the table in the same commit."""
import collections
import pathlib
import re
import subprocess
import sys

MAY = {
    "base": "",
    "blas": "",
    "pjrt_abi": "",
    "prof": "",
    "peers": "",
    "chip": "",
    "net": "chip",
    "ir": "",
    "client": "peers prof pjrt_abi",
    "stablehlo": "stablehlo/hlo ir",
    "stablehlo/hlo": "stablehlo ir",
    "interp": "blas ir",
    "compile": "compile/pass compile/plan ir",
    "compile/pass": "compile/spmd interp ir",
    "compile/spmd": "ir",
    "compile/grad": "ir",
    "compile/fuse": "compile/pass ir",
    "compile/plan": "compile/fuse compile/pass ir",
    "sim": "sim/hlo sim/schedule sim/tpu sim/gpu sim/eager sim/params compile/pass compile/spmd chip ir prof",
    "sim/hlo": "ir",
    "sim/params": "chip",
    "sim/schedule": "sim/hlo sim sim/params net ir",
    "sim/tpu": "sim/schedule sim/hlo sim/params sim ir",
    "sim/gpu": "sim/schedule sim/hlo sim/params sim ir",
    "sim/eager": "sim/gpu sim/schedule sim/hlo sim/params sim ir",
    "dev": "compile compile/pass compile/spmd interp ir peers prof",
    "dev/interp": "dev interp compile/pass ir prof",
    "dev/null": "dev ir",
    "dev/cpu": "dev dev/cpu/kernel dev/cpu/loops dev/cpu/vinterp compile interp ir prof",
    "dev/cpu/kernel": "interp ir",
    "dev/cpu/loops": "dev/cpu/kernel compile/plan compile/fuse compile/pass interp ir",
    "dev/cpu/vinterp": "dev/cpu/loops dev/cpu/kernel compile/fuse compile/pass ir",
    "dev/cpu/dot": "dev/cpu/kernel blas ir",
    "dev/cpu/conv": "dev/cpu/dot dev/cpu/kernel blas ir",
    "dev/cpu/ops": "dev/cpu/dot dev/cpu/kernel interp blas ir",
    "dev/sim": "dev dev/cpu sim compile compile/pass chip interp ir prof",
    "pjrt": "dev stablehlo compile/pass compile/spmd interp chip ir peers prof pjrt_abi",
    "train": "client peers stablehlo compile/grad ir prof",
    "advise": "sim compile/pass stablehlo chip client ir prof",
    "plan": "advise net sim chip ir",
    "launch": "chip",
    "zoo": "train ir",
    "adopt": "train client stablehlo compile/spmd ir",
    "infer": "adopt train zoo client stablehlo ir prof",
    "api": "infer client train zoo stablehlo ir prof",
    "cli": "*",
}

# What a folder may call beside what it may include: lists that the build makes, and what comes with a header that comes with another.
CALLS = {
    "dev": "dev/cpu dev/interp dev/null dev/sim",  # dev_list.inc
    "dev/cpu": "dev/cpu/conv dev/cpu/dot dev/cpu/ops compile/plan",  # kernel_list.inc
    "dev/sim": "sim/schedule",  # sim_array_bytes of sim.h
    "sim/eager": "chip",
    "sim/gpu": "chip",
    "sim/schedule": "chip",
    "sim/tpu": "chip",
}

# The most files of a folder that may call each other in a circle: recursion that is meant (types, regions, expressions), and what
# has not been opened yet. None may grow.
CIRCLES = {
    "interp": 23,
    "dev/cpu/loops": 6,
    "ir": 11,
    "dev": 6,
    "dev/cpu": 5,
    "stablehlo": 7,
    "stablehlo/hlo": 7,
    "compile/grad": 5,
    "compile/fuse": 6,
    "compile/pass": 2,
    "train": 3,
    "chip": 2,
    "net": 2,
    "compile/plan": 2,
    "pjrt": 2,
}


def linked(build, src):
    """{file: {file that it calls: names}} from the objects of the sources that there are."""
    objects = [o for o in (build / "CMakeFiles").glob("weft_*.dir/src/**/*.o") if (src / name_of(o)).with_suffix(".c").exists()]
    defined, undefined, twice = {}, collections.defaultdict(set), []
    for line in subprocess.run(["nm", "-A", *map(str, objects)], capture_output=True, text=True, check=True).stdout.splitlines():
        where, rest = line.split(":", 1)
        words = rest.split()
        if len(words) == 2 and words[0] == "U":
            undefined[name_of(where)].add(words[1])
        elif len(words) == 3 and words[1] in "TDRBV":
            if words[2] in defined:
                print(f"{words[2]} is defined by {name_of(where)}.c and {defined[words[2]]}.c: the linker takes either")
                twice.append(words[2])
            defined[words[2]] = name_of(where)
    calls = collections.defaultdict(lambda: collections.defaultdict(set))
    for file, names in undefined.items():
        for name in names:
            if defined.get(name, file) != file:
                calls[file][defined[name]].add(name)
    return calls, len(twice)


def name_of(object_file):
    return re.sub(r"^.*?\.dir/src/", "", str(object_file))[:-4]


def circles(calls):
    """Files that call each other in a circle (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def walk(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in calls[v]:
            if w not in index:
                walk(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            at = stack.index(v)
            found.append(stack[at:])
            del stack[at:]

    for v in list(calls):
        if v not in index:
            walk(v)
    return [c for c in found if len(c) > 1]


def check_objects(build, src):
    calls, bad = linked(build, src)
    for file in sorted(calls):
        own = file.rsplit("/", 1)[0]
        if MAY[own] == "*":
            continue
        allowed = set((MAY[own] + " " + CALLS.get(own, "")).split()) | {own, "base"}
        for other in sorted(calls[file]):
            if other.rsplit("/", 1)[0] not in allowed:
                print(f"{file}.c: {own} may not call {sorted(calls[file][other])[0]} of {other}.c")
                bad += 1
    for c in circles(calls):
        folder = min((f.rsplit("/", 1)[0] for f in c), key=len)
        if len(c) > CIRCLES.get(folder, 0):
            print(f"{folder}: {len(c)} files call each other in a circle ({CIRCLES.get(folder, 0)} are allowed): {' '.join(sorted(c))}\n"
                  "  what two of them call goes to a file that calls neither; or the caller hands a function on")
            bad += 1
    return bad


def dangling(root):
    """Comments of the sources, and pages of docs/, that name a source file which is not there."""
    files = [p.relative_to(root).as_posix() for d in ("src", "include", "tools", "tests", "cmake", "examples", "bench") for p in (root / d).rglob("*.*")]
    names, bad = {f.rsplit("/", 1)[-1] for f in files}, 0
    for path in sorted([*(root / "src").rglob("*.[chd]*"), *(root / "include").rglob("*.h"), *(root / "docs").glob("*.md")]):
        text = path.read_text(errors="replace")
        comments = [(m.start(), m[0]) for m in re.finditer(r"/\*.*?\*/", text, re.S)] if path.suffix != ".md" else [(0, text)]
        for at, comment in comments:
            for m in re.finditer(r"(?<![\w.<\"'/*-])((?:\w+/)*[a-z_0-9]+\.(?:c|h|def))(?![\w.>])", comment):
                name = m[1]
                if name == "llm.c" or (any(("/" + f).endswith("/" + name) for f in files) if "/" in name else name in names):
                    continue
                print(f"{path.relative_to(root)}:{text[:at + m.start()].count(chr(10)) + 1}: there is no {name}")
                bad += 1
    return bad


def closure(folder):
    """The folder and all that it may reach."""
    seen, ahead = [], [folder, "base"]
    while ahead:
        own = ahead.pop(0)
        if own not in seen:
            seen.append(own)
            ahead += (MAY[own] + " " + CALLS.get(own, "")).split()
    return seen


def folder_of(path, src):
    parts = path.relative_to(src).parts[:-1]
    return "/".join(parts)


def main():
    if "--closure" in sys.argv:
        print(";".join(closure(sys.argv[-1])))
        return 0
    src = pathlib.Path(__file__).resolve().parent.parent / "src"
    bad = 0
    for path in sorted(src.rglob("*.[ch]")):
        own = folder_of(path, src)
        if own not in MAY:
            print(f"{path.relative_to(src)}: folder '{own}' is not in tools/layers.py")
            bad += 1
            continue
        is_test = re.search(r"_(test|fuzz)\.[ch]$", path.name)
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            m = re.match(r'\s*#\s*include\s+"([^"]+)/([^"/]+)"', line)
            if not m:
                continue
            target = m.group(1)
            allowed = set(MAY[own].split()) | {own, "base"}
            if MAY[own] == "*" or target in allowed or is_test:
                if target != own and m.group(2).endswith("_priv.h") and not is_test:
                    print(f"{path.relative_to(src)}:{number}: private header of {target}")
                    bad += 1
                continue
            print(f"{path.relative_to(src)}:{number}: {own} may not include {target}")
            bad += 1
    if "--objects" in sys.argv:
        sys.setrecursionlimit(10000)
        bad += check_objects(pathlib.Path(sys.argv[sys.argv.index("--objects") + 1]), src)
    bad += dangling(src.parent)
    print(f"layers: {bad} arrows against the table, or names of files that are not there" if bad else "layers: all arrows point the right way")
    return 1 if bad else 0


sys.exit(main())
