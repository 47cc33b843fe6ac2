"""Nothing costs nothing: what a report says of a kernel and of a program stays within what the chip's data sheet allows, on every chip.

  a kernel takes no less than its bytes at the bandwidth of device memory, and no less than its operations at the peak of their precision
  a program takes no less than what its kernels and transfers move, and the small ones of limits/ no less than their arguments and results, but
  for what is said to stay in a cache (cached_bytes)

Programs of all sets of this folder, a share of them on each chip so that all chips and all programs are met (LIMITS_EVERY=1 and LIMITS_ALL=1: every
program on every chip, minutes), the small ones of limits/, each of which once broke a limit, and programs drawn at random (random_programs.py;
LIMITS_SEEDS="FROM COUNT": others), of which it is known what they need."""
import json
import math
import os
import pathlib
import re
import subprocess
import tarfile

import pytest

import random_programs

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
    keys += ["peak_bf16", "peak_fp16"] * ("f8" in text)  # what has no units for them makes them 16 bits
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


def product_peak(chip, kind, text):
    """Of products of this type, per device. Of complex numbers three real ones count."""
    def first(*keys):
        return next((chip[k] for k in keys if k in chip), 0)

    single = first("peak_fp32", "peak_bf16")
    half = max(first("peak_bf16", "peak_fp16", "peak_fp32"), first("peak_fp16"))
    plain = kind.removeprefix("complex<").rstrip(">")
    bits = random_programs.bits(plain)
    if plain == "f64":
        rate = max(chip.get("peak_fp64", 0), chip.get("peak_fp64_tc", 0)) or (half / 3 if chip["name"].startswith("tpu") else single / 32)
    elif plain == "f32":
        passes = 6 if "HIGHEST" in text else 3 if "precision HIGH>" in text else 1
        rate = half / passes if chip["name"].startswith("tpu") else single if passes == 6 else first("peak_tf32", "peak_fp32")
    else:
        fast = [first("peak_fp8" if plain.startswith("f") else "peak_int8")] * (bits <= 8) + [chip.get("peak_int4", 0)] * (bits <= 4)
        rate = max([half, *fast])
    return rate / chip["devices_per_chip"] * (1 if plain == kind else 1 / 3)


def numbers(report):
    for one in [report, *report["kernels"], *report["buffers"], *report["owners"]]:
        for key, value in one.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                yield one.get("name", "program"), key, value


def wrong(report, chip, p):
    """What cannot be true of this program, in words."""
    text = p.mlir()
    out = [f"{name}: {key} is {x}" for name, key, x in numbers(report) if not math.isfinite(x) or x < 0]
    out += [f"{name}: {key} is {x}" for name, key, x in numbers(report) if key in ("mfu", "hfu", "utilisation") and x > 1 + 1e-9]
    out += broken(report, chip, text, False)
    kept = sum(k["cached_bytes"] for k in report["kernels"])
    least = (p.ends() - kept) / bandwidth(chip)
    if report["time_s"] < least * SLACK or report["time_s"] <= 0:
        out.append(f"{report['time_s']:.3g} s, its arguments and results take {least:.3g}")
    least = p.flops / product_peak(chip, p.args[0][2] if p.args else "f32", text)
    if report["time_s"] < least * SLACK:
        out.append(f"{report['time_s']:.3g} s for {p.flops:.3g} FLOP, at least {least:.3g}")
    if report["flops"] < p.flops / 2 * SLACK and p.flops > 100:  # what has one to add up is only multiplied; single numbers count as nothing
        out.append(f"{report['flops']:.3g} FLOP of {p.flops:.3g}")
    both = report["argument_bytes"] + report["output_bytes"] - report["alias_bytes"]
    if report["peak_bytes"] < both * SLACK:
        out.append(f"peak of {report['peak_bytes']:.3g} bytes, arguments and results are {both:.3g}")
    return out


# A compiler may take another way for the longer array: XLA's GPU loops of four elements a thread from some length on, relayouts on TPUs. That is
# known to save three quarters at most.
FALL = 0.25


@pytest.mark.parametrize("chip", sorted(CHIPS))
def test_random_programs(chip, tmp_path):
    start, count = map(int, os.environ.get("LIMITS_SEEDS", f"{1000 * sorted(CHIPS).index(chip)} {len(random_programs.KINDS)}").split())
    drawn = {}
    for seed in range(start, start + count):
        for times in (1, 2):
            p = random_programs.draw(seed, times)
            file = tmp_path / f"{p.kind}_{seed}_{times}.mlir"
            file.write_text(p.mlir())
            drawn[seed, times] = p, str(file)
    run = subprocess.run([WEFT, "estimate", *[f for _, f in drawn.values()], "--chip", chip, "--json"], capture_output=True, text=True)
    reports = {r["program"]: r for r in map(json.loads, run.stdout.splitlines())}
    assert run.returncode in (0, 1) and len(reports) == len(drawn), f"{len(reports)} of {len(drawn)}, exit {run.returncode}: {run.stderr[-2000:]}"
    out = []
    for p, file in drawn.values():
        out += [f"{pathlib.Path(file).name} on {chip}: {what}" for what in wrong(reports[file], CHIPS[chip], p)]
    for seed in range(start, start + count):
        (p, one), (_, two) = drawn[seed, 1], drawn[seed, 2]
        a, b = reports[one], reports[two]
        if p.monotone and b["time_s"] < FALL * a["time_s"] and a["time_s"] > 10e-6:
            out.append(f"{pathlib.Path(one).name} on {chip}: {a['time_s']:.3g} s, twice of it {b['time_s']:.3g}")
    assert not out, f"{len(out)} impossible:\n" + "\n".join(out[:20])
