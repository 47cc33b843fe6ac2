#!/usr/bin/env python3
"""Fits what libraries' kernels take on GPUs, `fit.product_*` and `fit.product8_*` of data/chips, to products that others measured
(tests/sim/gpu/gemm.csv.xz).

    tools/fit_gpu.py                    # the error of both halves of the rows, nothing is changed
    tools/fit_gpu.py --fit h100-sxm     # one chip's coefficients, written into its file
    tools/fit_gpu.py --fit all
    tools/fit_gpu.py --check            # fails where a row of BOUNDS is worse on what is kept apart

Half of the rows is fitted, the other, drawn by the shape's checksum, is kept apart. The model is weft's own (`weft kernel -`), asked
with changed chip files in WEFT_DATA: src/sim/gpu/cost_product.c says what each coefficient means. Rows over 100 us count
most: what training is made of. Rows of 8 bits hold the pass that makes 8 bits of the left operand's 16 as well, from its size in
time; that pass is fitted beside the product (printed, us and TB/s) and no part of it. The rows' time is the least of several
measurements; what is fitted is up to TYPICAL above it, half of the way to their median: what a board takes that is not the best.
Build weft_bin first.
"""
import argparse
import csv
import lzma
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

import numpy as np
from scipy.optimize import least_squares

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHIPS = ROOT / "data/chips"
WEFT = pathlib.Path(os.environ.get("WEFT_BUILD", ROOT / "build")) / "weft"
FILES = {  # the rows' names: our files
    "a100_sxm": "a100-80gb", "h100_sxm": "h100-sxm", "h200_sxm": "h200", "b200_sxm": "b200", "b300_sxm": "b300", "gb200": "gb200",
    "gb300": "gb300", "l40s": "l40s", "rtx_pro_6000_server": "rtx-pro-6000",
}
BOUNDS = {("a100-80gb", "bf16"): (6, 20), ("h100-sxm", "bf16"): (6, 20), ("h200", "bf16"): (6, 20), ("b200", "bf16"): (6, 20)}  # median, p90
TYPICAL = 1.04
LONG, SHORT = 100, 0.25  # us; what shorter rows count
FACTS = {  # name: (start, unit)
    "rate": (.85, ""), "load": (120, ""), "tile": (2, "us"), "fill": (1.3, "us"), "split": (1.6, "us"), "sums": (5, "TB/s"), "even": (.6, ""),
    "heat": (.04, ""), "overlap": (4, ""), "stream": (.88, ""),
}
PASS = {"pass": (2, "us"), "pass_rate": (2, "TB/s")}  # of rows of 8 bits
MOST = {"even": 1, "stream": 1, "rate": 1}


def rows():
    """{(chip file, type): [(line, us, apart, bytes of the pass before, weight, what is fitted)]}"""
    out = {}
    with lzma.open(ROOT / "tests/sim/gpu/gemm.csv.xz", "rt") as f:
        for r in csv.DictReader(f):
            shape, type = f"{r['m']}x{r['n']}x{r['k']}", {"bfloat16": "bf16", "fp8": "f8E4M3FN"}[r["dtype"]]
            apart = zlib.crc32(shape.encode()) % 2 == 0
            narrowed = 3 * int(r["m"]) * int(r["k"]) if type != "bf16" else 0  # bytes read and written to make 8 bits of 16
            us = float(r["us"])
            typical = min(TYPICAL * us, (us * float(r["median"])) ** .5)
            out.setdefault((FILES[r["chip"]], type), []).append((f"product {shape} {type}", us, apart, narrowed, SHORT if us <= LONG else 1, typical))
    with open(ROOT / "tests/sim/gpu/h100.csv") as f:  # what XLA took for small ones, by cuBLAS; 0.3 us from one kernel to the next
        for r in csv.DictReader(f):
            shape = re.fullmatch(r"mm_bf16_(\d+)x(\d+)x(\d+)", r["program"])
            if shape and r["autotuned"] == "0" and r["kernels"] == "1" and min(map(int, shape.groups())) > 8:
                line = f"product {shape[1]}x{shape[2]}x{shape[3]} bf16"
                m, n, k = map(int, shape.groups())
                for chip in ("h100-sxm", "h200") if 2 * (m * k + k * n + m * n) < 8e6 else ("h100-sxm",):  # the same SMs
                    us = float(r["device_us"]) + .3
                    out[chip, "bf16"].append((line, us, zlib.crc32(line.encode()) % 2 == 0, 0, 1, us))
    return out


def beside(data, passes):
    """Microseconds of the pass before each product."""
    return np.array([passes[0] + r[3] / passes[1] * 1e-6 if r[3] else 0 for r in data])


def ask(lines, data):
    p = subprocess.run([WEFT, "kernel", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True, env=dict(os.environ, WEFT_DATA=data))
    if p.returncode:
        sys.exit(p.stderr)
    return np.array([float(x) for x in p.stdout.split()])


def name_of(file):
    return re.search(r"^name\s*=\s*(\S+)", (CHIPS / f"{file}.chip").read_text(), re.M)[1]


def prefix(type):
    return "fit.product_" if type == "bf16" else "fit.product8_"


def with_facts(file, pre, values, note):
    text = (CHIPS / f"{file}.chip").read_text()
    for key, value in values.items():
        unit = FACTS[key][1]
        line = f"{pre + key:26} = {min(value, MOST.get(key, 1e9)):.5g}{' ' * bool(unit)}{unit}  # {note}"
        text, n = re.subn(rf"^{re.escape(pre + key)}\s.*$", line, text, flags=re.M)
        if not n:
            text = text.rstrip("\n") + "\n" + line + "\n"
    return text


def start_values(file, pre):
    text = (CHIPS / f"{file}.chip").read_text()
    found = {k: re.search(rf"^{re.escape(pre + k)}\s*=\s*(\S+)", text, re.M) for k in FACTS}
    return np.array([float(found[k][1]) if found[k] else FACTS[k][0] for k in FACTS])


def fit(file, type, data, starts):
    """Writes the coefficients; returns those of the pass."""
    pre = prefix(type)
    fitted = [r for r in data if not r[2]]
    want = np.log([r[5] for r in fitted])
    weight, step, pull, n = np.array([r[4] for r in fitted]), 1e-3, 0.02, len(FACTS)
    more = np.log([v for v, _ in PASS.values()])
    base, anew = (np.concatenate([np.log(x), more]) for x in (start_values(file, pre), [v for v, _ in FACTS.values()]))
    with tempfile.TemporaryDirectory() as d:
        folder = pathlib.Path(d) / "chips"
        folder.mkdir()

        def points(all_x):
            lines = []
            for i, x in enumerate(all_x):
                text = with_facts(file, pre, dict(zip(FACTS, np.exp(x[:n]))), "trial")
                text = re.sub(r"^(aliases|server) .*\n", "", text, flags=re.M)
                (folder / f"trial{i}.chip").write_text(re.sub(r"^name .*$", f"name = trial{i}  # trial", text, flags=re.M))
                lines += [f"trial{i} {r[0]}" for r in fitted]
            got = ask(lines, d).reshape(len(all_x), -1)
            return np.log(got + [beside(fitted, np.exp(x[n:])) for x in all_x])

        def residual(x):
            return np.concatenate([weight * (points([x])[0] - want), pull * (x - base)])

        def jacobian(x):
            got = points([x] + [x + step * e for e in np.eye(len(x))])
            return np.concatenate([(weight * (got[1:] - got[0]) / step).T, pull * np.eye(len(x))])

        best, rng = None, np.random.default_rng(1)
        for k in range(starts):
            x0 = base if k == 0 else (anew if k % 2 else best.x) + (rng.normal(0, .2, len(base)) if k > 1 else 0)
            r = least_squares(residual, x0, jac=jacobian, loss="soft_l1", f_scale=.05, max_nfev=60)
            if best is None or r.cost < best.cost:
                best = r
    values = dict(zip(FACTS, np.exp(best.x[:n])))
    (CHIPS / f"{file}.chip").write_text(with_facts(file, pre, values, "fitted: tools/fit_gpu.py to tests/sim/gpu/gemm.csv.xz"))
    return np.exp(best.x[n:])


def narrowing(data, got):
    """The pass that explains best what products leave."""
    def off(x):
        return np.log((got + beside(data, np.exp(x))) / [r[1] for r in data])
    return np.exp(least_squares(off, np.log([v for v, _ in PASS.values()]), loss="soft_l1", f_scale=.05).x)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--fit", help="a chip's file, or all")
    args.add_argument("--check", action="store_true")
    args.add_argument("--starts", type=int, default=3)
    a = args.parse_args()
    bad = []
    print(f"{'chip':14} {'type':10} {'rows':>5}  over {LONG} us: fitted, kept apart; shorter: fitted, kept apart (median and 90th percentile of the error, %)")
    for (file, type), data in rows().items():
        if a.fit and a.fit not in (file, "all"):
            continue
        if a.fit:
            fit(file, type, data, a.starts)
        want, apart = np.array([r[1] for r in data]), np.array([r[2] for r in data])
        name = name_of(file)
        got = ask([f"{name} {r[0]}" for r in data], str(ROOT / "data"))
        passes = narrowing([r for r in data if not r[2]], got[~apart]) if type != "bf16" else (0, 1)
        error = 100 * np.abs((got + beside(data, passes)) / want - 1)
        cells = []
        for part in (want > LONG, want <= LONG):
            for half in (~apart, apart):
                e = error[part & half]
                cells.append((np.median(e), np.quantile(e, .9)) if len(e) else (0, 0))
        print(f"{file:14} {type:10} {len(data):5}  " + "   ".join(f"{m:5.1f} {p:5.1f}" for m, p in cells)
              + (f"   pass {passes[0]:.1f} us, {passes[1]:.2f} TB/s" if type != "bf16" else ""), flush=True)
        most = BOUNDS.get((file, type), (1e9, 1e9))
        if cells[1][0] > most[0] or cells[1][1] > most[1]:
            bad.append(f"{file} {type}")
    if a.check and bad:
        sys.exit(f"worse than its bound: {', '.join(bad)}")


main()
