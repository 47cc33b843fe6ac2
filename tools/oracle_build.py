#!/usr/bin/env python3
"""Makes a set of programs with libtpu's own estimates, as tests/sim/oracle has them: oracle_build.py NAME CHIP[,CHIP...] GROUP PROGRAM.mlir...

CHIP is v2, v3, v4, v5e, v5p, v6e or tpu7x; GROUP micro, block or step. Writes tests/sim/oracle/NAME.csv and NAME.tar.xz, or adds to them: a row for
each program and chip with the cycles that libtpu's compiler estimates for its kernels, loops as often as they run, and the bytes of its memory;
and what weft says of it now, `first_cycles` and `first_peak`, which nobody may change later. Say in tests/sim/sets.toml what the set is: `first` until
somebody looks at a row. Needs jax and libtpu (the sets of today are 0.0.51's); no TPU. A compiler process for each chip."""
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

import libtpu_ask

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests/sim/oracle"
WEFT = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")).resolve() / "weft"
COLUMNS = ["program", "chip", "group", "est_cycles", "peak_bytes", "arg_bytes", "out_bytes", "temp_bytes", "alias_bytes", "first_cycles", "first_peak"]


def trips(condition):
    """Of a loop that counts from 0 by 1 up to a constant, as jax.lax's do; 1 of another, which is said."""
    text = "\n".join(condition)
    limits = re.findall(r" constant\((\d+)\)", text)
    if len(limits) == 1 and re.search(r"ROOT .* compare\(.*direction=LT", text):
        return int(limits[0])
    print("a loop of unknown trips is counted once", file=sys.stderr)
    return 1


def cycles(text):
    """Estimates of all kernels of a scheduled program, in HLO's text: bodies of loops as often as they run, of branches the dearest."""
    parts, name = {}, None
    for line in text.splitlines():
        head = re.match(r"(ENTRY )?%?([\w.\-]+) .*\{$", line)
        if head and not line.startswith(" "):
            name = "ENTRY" if head[1] else head[2]
            parts[name] = []
        elif name and line.startswith(" "):
            parts[name].append(line)

    def of(part):
        total = 0
        for line in parts.get(part, []):
            own = re.search(r'"estimated_cycles":"(\d+)"', line)
            total += int(own[1]) if own else 0
            loop = re.search(r" while\(.*condition=%?([\w.\-]+), body=%?([\w.\-]+)", line)
            if loop:
                total += trips(parts.get(loop[1], [])) * (of(loop[1]) + of(loop[2]))
            branches = re.search(r"branch_computations=\{([^}]*)\}", line) or re.search(r" conditional\(.*true_computation=(\S+, false_computation=\S+)", line)
            if branches:
                total += max(of(b.split("=")[-1].strip(" %,")) for b in branches[1].split(","))
            call = re.search(r" call\(.*to_apply=%?([\w.\-]+)", line)
            total += of(call[1]) if call else 0
        return total

    return of("ENTRY")


def answers(chip, paths):
    compiled = libtpu_ask.open_chip(chip)
    for path in paths:
        try:
            done = compiled(path)
            found = cycles(done.hlo_modules()[0].to_string())
        except RuntimeError as e:  # what this compiler cannot do, or cannot hand out
            print(f"{path.stem}: {e}", file=sys.stderr)
            continue
        m = done.get_compiled_memory_stats()
        print(json.dumps([path.stem, found, m.peak_memory_in_bytes, m.argument_size_in_bytes, m.output_size_in_bytes,
                          m.temp_size_in_bytes, m.alias_size_in_bytes]), flush=True)


def main():
    if len(sys.argv) > 3 and sys.argv[1] == "--answers":
        return answers(sys.argv[2], list(map(pathlib.Path, sys.argv[3:])))
    if len(sys.argv) < 5 or not set(sys.argv[2].split(",")) <= set(libtpu_ask.TOPOLOGY) or sys.argv[3] not in ("micro", "block", "step"):
        sys.exit(__doc__)
    name, chips, group, paths = sys.argv[1], sys.argv[2].split(","), sys.argv[3], list(map(pathlib.Path, sys.argv[4:]))
    table, archive, rows, programs = FOLDER / f"{name}.csv", FOLDER / f"{name}.tar.xz", {}, {}
    if table.exists():
        rows = {(r["program"], r["chip"]): r for r in csv.DictReader(table.open())}
        with tarfile.open(archive) as t:
            programs = {m.name: t.extractfile(m).read() for m in t.getmembers()}
    programs.update({p.name: p.read_bytes() for p in paths})
    for chip in chips:
        ours = chip if chip.startswith("tpu") else "tpu-" + chip
        p = subprocess.run([sys.executable, __file__, "--answers", chip, *map(str, paths)], capture_output=True, text=True)
        found = [json.loads(line) for line in p.stdout.splitlines() if line.startswith("[")]
        if len(found) < len(paths):
            print(f"{chip}: {len(found)} of {len(paths)} programs: {p.stderr[-300:]}", file=sys.stderr)
        for stem, *numbers in found:
            path = next(q for q in paths if q.stem == stem)
            said = json.loads(subprocess.run([WEFT, "estimate", path, "--chip", ours, "--json"], capture_output=True, text=True).stdout)
            row = dict(zip(COLUMNS, [stem, ours, group, *numbers, round(said["cycles"]), round(said["peak_bytes"])]))
            rows.setdefault((stem, ours), row)
            print(f"{stem} {ours}: {numbers[0]} cycles, {numbers[1]} bytes; weft: {row['first_cycles']}, {row['first_peak']}")
    with table.open("w", newline="") as f:
        w = csv.DictWriter(f, COLUMNS, lineterminator="\n")
        w.writeheader()
        w.writerows(rows[k] for k in sorted(rows))
    with tarfile.open(archive, "w:xz") as t:
        for file, data in sorted(programs.items()):
            info = tarfile.TarInfo(file)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))


if __name__ == "__main__":
    main()
