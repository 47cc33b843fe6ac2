"""Nothing costs nothing: what a report says of a kernel and of a program stays within what the chip's data sheet allows, on every chip.

  a kernel takes no less than its bytes at the bandwidth of device memory, and no less than its operations at the peak of their precision
  a program takes no less than what its kernels and transfers move, and the small ones of limits/ no less than their arguments and results, but
  for what is said to stay in a cache (cached_bytes)

Programs of all sets of this folder, a share of them on each chip so that all chips and all programs are met (LIMITS_EVERY=1 and LIMITS_ALL=1: every
program on every chip, minutes), and the small ones of limits/, each of which once broke a limit."""
import json
import os
import pathlib
import re
import subprocess
import tarfile

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
WEFT = os.path.join(os.environ.get("WEFT_BUILD", ROOT / "build"), "weft")
UNITS = {"": 1, "GB/s": 1e9, "TB/s": 1e12, "TFLOP/s": 1e12, "PFLOP/s": 1e15, "GFLOP/s": 1e9}
BITS = {"i1": 8, "pred": 8, "i4": 4, "ui4": 4, "complex<f32>": 64, "complex<f64>": 128}
# Operations that may read a part of an argument, write a part of a donated one, or go over a part of the program more than once or never.
PARTIAL = ("gather", "dynamic_slice", "dynamic_update_slice", "scatter", "stablehlo.slice", "while", "custom_call", "case", "stablehlo.if", "call ", "convolution",
           "all_", "collective", "reduce_scatter", "pad ", "mhlo.num_partitions = ", "index_select", "resample", "composite", "sdy.")
SLACK = 1 - 1e-4  # times are printed in digits


def facts(path):
    out = {}
    for line in path.read_text().splitlines():
        m = re.match(r"(\w+)\s*=\s*([\d.e+-]+)\s*([\w/]*)", line)
        if m and m.group(1) not in out:
            out[m.group(1)] = float(m.group(2)) * UNITS.get(m.group(3), 1)
        elif line.startswith("name "):
            out["name"] = line.split("=")[1].split("#")[0].strip()
    return out


CHIPS = {c["name"]: c for c in (facts(p) for p in sorted((ROOT / "data/chips").glob("*.chip")))}


def bandwidth(chip):
    return chip["hbm_bandwidth"] / chip["devices_per_chip"]


def peak(chip, text):
    """The fastest units that any product of the program can run on."""
    keys = ["peak_fp32", "peak_fp64", "peak_fp64_tc", "peak_bf16" if "bf16" in text or chip["name"].startswith("tpu") else "peak_fp32",
            "peak_fp16" if "f16" in text else "peak_fp32", "peak_tf32"]
    keys += ["peak_int8"] * ("i8" in text) + ["peak_fp8"] * ("f8" in text) + ["peak_int4"] * ("i4" in text) + ["peak_fp4"] * ("f4" in text)
    return max(chip.get(k, 0) for k in keys) / chip["devices_per_chip"]


def size(tensor):
    *dims, kind = tensor.split("x")
    n = 1
    for d in dims:
        n *= int(d)
    m = re.search(r"\d+", kind)
    return n * BITS.get(kind, int(m.group()) if m else 0) / 8


def ends(text):
    """Bytes of the arguments that are used and of the results; None where parts of them may do."""
    if any(p in text for p in PARTIAL):
        return None
    m = re.search(r"func\.func (?:public )?@main\((.*?)\)\s*->\s*(.*?)\{\s*$", text, re.M | re.S)
    if not m:
        return None
    total = 0
    for name, tensor in re.findall(r"(%\w+): tensor<((?:[^<>]|<[^<>]*>)*)>", m.group(1)):
        if len(re.findall(re.escape(name) + r"\b", text)) > 1 and "donor" not in m.group(1) and "aliasing" not in m.group(1):
            total += size(tensor)
    return total + sum(size(t) for t in re.findall(r"tensor<((?:[^<>]|<[^<>]*>)*)>", m.group(2)) if "?" not in t)


def broken(report, chip, text, whole):
    """What the report breaks, in words."""
    out, top, rate = [], bandwidth(chip), peak(chip, text)
    for k in report["kernels"]:
        t, one = k["time_s"], 1 / top  # of bytes, which are printed whole
        if t + one < k["bytes"] / top * SLACK:
            out.append(f"{k['name']}: {t:.3g} s for {k['bytes']:.3g} bytes, at least {k['bytes'] / top:.3g}")
        if t + 2 * one < (k["bytes"] + k["transfer_bytes"]) / top * SLACK:
            out.append(f"{k['name']}: {t:.3g} s for {k['bytes'] + k['transfer_bytes']:.3g} bytes with transfers")
        if t < k["flops"] / rate * SLACK:
            out.append(f"{k['name']}: {t:.3g} s for {k['flops']:.3g} FLOP, at least {k['flops'] / rate:.3g}")
    least = ends(text) if whole else None
    kept = sum(k["cached_bytes"] for k in report["kernels"])
    if least and report["time_s"] < (least - kept) / top * SLACK:
        out.append(f"program: {report['time_s']:.3g} s, arguments and results take {(least - kept) / top:.3g}")
    if report["time_s"] < report["bytes"] / top * SLACK:
        out.append(f"program: {report['time_s']:.3g} s for {report['bytes']:.3g} bytes")
    return out


def check(files, chip, whole=False):
    p = subprocess.run([WEFT, "estimate", *map(str, files), "--chip", chip, "--json"], capture_output=True, text=True)
    reports = [json.loads(line) for line in p.stdout.splitlines() if line.startswith("{")] if len(files) > 1 else [json.loads(p.stdout)] if p.stdout else []
    out = []
    for r in reports:
        text = pathlib.Path(r["program"]).read_text(errors="replace")
        out += [f"{pathlib.Path(r['program']).name} on {chip}: {what}" for what in broken(r, CHIPS[chip], text, whole)]
    return out, len(reports)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for archive in sorted(HERE.glob("*/*.tar.xz")):
        with tarfile.open(archive) as t:
            for m in filter(tarfile.TarInfo.isfile, t.getmembers()):
                (folder / m.name).write_bytes(t.extractfile(m).read())
    return sorted(folder.glob("*.mlir"))


@pytest.mark.parametrize("chip", sorted(CHIPS))
def test_no_faster_than_physics(programs, chip):
    at = sorted(CHIPS).index(chip)
    share = int(os.environ.get("LIMITS_EVERY", 4)) * (1 if os.environ.get("LIMITS_ALL") else len(CHIPS))
    mine = programs[at % share::share]
    out, n = [], 0
    for i in range(0, len(mine), 50):
        some, m = check(mine[i:i + 50], chip)
        out, n = out + some, n + m
    assert n >= len(mine) * 0.9, f"{n} of {len(mine)} programs have an answer"
    assert not out, f"{len(out)} limits broken:\n" + "\n".join(out[:20])


@pytest.mark.parametrize("chip", sorted(CHIPS))
def test_programs_that_broke_a_limit(chip):
    out, n = check(sorted((HERE / "limits").glob("*.mlir")), chip, whole=True)
    assert n == len(list((HERE / "limits").glob("*.mlir")))
    assert not out, "\n".join(out)
