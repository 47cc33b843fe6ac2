#!/usr/bin/env python3
"""What libtpu makes of a program, without a device: libtpu_ask.py CHIP OUT PROGRAM.mlir...

CHIP is v2, v3, v4, v5e, v5p, v6e or tpu7x. Needs jax and libtpu (0.10.2 and 0.0.51 were used). Writes OUT/PROGRAM@CHIP.hlo, the scheduled
program with layouts, memory spaces and estimates, and prints the bytes of its memory and what is alive where each memory is fullest, as
the live ranges of its dump have it. docs/tpu-compiler.md says what such answers have told so far."""
import os
import pathlib
import re
import shutil
import sys
import time

TOPOLOGY = {"v2": "v2:2x2", "v3": "v3:2x2", "v4": "v4:2x2x1", "v5e": "v5e:2x2", "v5p": "v5p:2x2x1", "v6e": "v6e:2x2",
            "tpu7x": "tpu7x:2x2x1"}
OPTIONS = {"v4": {"chip_config_name": "megacore"}}  # a device is a chip
SMALL = 20000  # bytes: not worth a line


def live_ranges(folder):
    """name{index} -> first and last instruction; their names by number."""
    text = max(folder.glob("*after_optimizations-live-range.txt")).read_text()
    sequence, ranges = text.split("BufferLiveRange:")
    names = {int(i): n for i, n in re.findall(r"^ +(\d+):(\S+)$", sequence, re.M)}
    spans = {n: (int(a), int(b)) for n, a, b in re.findall(r"^ +(.+?):(-?\d+)-(\d+)\s*$", ranges, re.M)}
    return names, spans


def values(folder):
    """(memory space, name{index}, bytes, shape) of each value that is no argument, result or constant of the program."""
    out, space, own = [], 0, False
    for line in max(folder.glob("*after_optimizations-buffer-assignment.txt")).read_text().splitlines():
        if line.startswith("allocation"):
            color = re.search(r"color (\d+)", line)
            space = int(color.group(1)) if color else 0
            own = not re.search(r"parameter|maybe-live-out|constant|thread-local", line)
        m = re.match(r" value: <\d+ (\S+?)(\{[\d, ]*\})? @\d+> \(size=(\d+),offset=\d+\): (\S+)", line)
        if m and (space or own):
            out.append((space, m.group(1) + (m.group(2) or "{}"), int(m.group(3)), m.group(4)))
    return out


def fullest(folder, wanted):
    """Where a memory space is fullest and what is alive there. A kernel that writes several slices in place counts them once here, the
    compiler's peak twice."""
    names, spans = live_ranges(folder)
    alive = [v for v in values(folder) if v[0] == wanted and v[1] in spans]
    total = [0] * (max(names) + 2)
    for _, name, size, _ in alive:
        for i in range(max(spans[name][0], 0), min(spans[name][1], len(total) - 1) + 1):
            total[i] += size
    at = max(range(len(total)), key=total.__getitem__)
    print(f"  memory {wanted}: {total[at] / 2**20:.2f} MiB at {at} of {len(names)}, {names.get(at)}")
    for _, name, size, shape in sorted(alive, key=lambda v: -v[2]):
        if spans[name][0] <= at <= spans[name][1] and size >= SMALL:
            print(f"    {size / 1024:9.1f} KiB  {name:44} {spans[name]}  {shape}")


def open_chip(chip, flags=""):
    """A compile function for programs of one device of the chip: path -> what JAX calls an executable, never to be run."""
    os.environ.update(TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1", JAX_PLATFORMS="cpu", XLA_FLAGS=flags)
    from jax.experimental import topologies
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir
    device = topologies.get_topology_desc(TOPOLOGY[chip], "tpu", **OPTIONS.get(chip, {})).devices[0]

    def compiled(path):
        with mlir.make_ir_context():
            module = ir.Module.parse(path.read_text())
        return device.client.compile(module, xla_client.DeviceList((device,)), compiler.get_compile_options(1, 1))

    return compiled


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in TOPOLOGY:
        sys.exit(__doc__)
    chip, out = sys.argv[1], pathlib.Path(sys.argv[2])
    dump = out / "dump"
    compiled = open_chip(chip, f"--xla_dump_to={dump}")
    for path in map(pathlib.Path, sys.argv[3:]):
        shutil.rmtree(dump, ignore_errors=True)
        out.mkdir(parents=True, exist_ok=True)
        start = time.time()
        done = compiled(path)
        (out / f"{path.stem}@{chip}.hlo").write_text(done.hlo_modules()[0].to_string())
        m = done.get_compiled_memory_stats()
        print(f"{path.stem} {chip}: arguments {m.argument_size_in_bytes}, results {m.output_size_in_bytes}, shared {m.alias_size_in_bytes}, "
              f"temporaries {m.temp_size_in_bytes}, peak {m.peak_memory_in_bytes} bytes; {time.time() - start:.0f} s")
        for space in (1, 3, 0):
            fullest(dump, space)


if __name__ == "__main__":
    main()
