#!/usr/bin/env python3
"""Who may include whose header. The table is the truth; the build fails on an include that is not in it.

A folder always may include itself and base. When an arrow must change, change the table in the same commit."""
import pathlib
import re
import sys

MAY = {
    "base": "",
    "pjrt_abi": "",
    "prof": "",
    "chip": "",
    "net": "chip",
    "ir": "",
    "client": "prof pjrt_abi",
    "stablehlo": "ir",
    "interp": "ir",
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
    "dev": "compile compile/pass compile/spmd interp ir prof",
    "dev/interp": "dev interp ir prof",
    "dev/null": "dev ir",
    "dev/cpu": "dev dev/cpu/kernel dev/cpu/loops dev/cpu/strips compile interp ir prof",
    "dev/cpu/kernel": "interp ir",
    "dev/cpu/loops": "dev/cpu/kernel compile/plan compile/fuse compile/pass interp ir",
    "dev/cpu/strips": "dev/cpu/loops dev/cpu/kernel compile/fuse compile/pass ir",
    "dev/cpu/dot": "dev/cpu/kernel ir",
    "dev/cpu/conv": "dev/cpu/dot dev/cpu/kernel ir",
    "dev/cpu/ops": "dev/cpu/kernel interp ir",
    "dev/sim": "dev dev/cpu sim compile compile/pass chip interp ir prof",
    "pjrt": "dev stablehlo compile/pass compile/spmd interp chip ir prof pjrt_abi",
    "train": "client stablehlo compile/grad ir prof",
    "advise": "sim compile/pass stablehlo chip client ir prof",
    "plan": "net sim chip",
    "launch": "chip",
    "zoo": "train ir",
    "api": "client train zoo stablehlo ir",
    "cli": "*",
}


def folder_of(path, src):
    parts = path.relative_to(src).parts[:-1]
    return "/".join(parts)


def main():
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
    print(f"layers: {bad} arrows against the table" if bad else "layers: all arrows point the right way")
    return 1 if bad else 0


sys.exit(main())
