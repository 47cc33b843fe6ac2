#!/usr/bin/env python3
"""`weft systolic` beside SCALE-Sim: cycles of matrix products on a systolic array, and the time that each simulator takes.

    python3 -m venv sv && sv/bin/pip install "scalesim==3.0.0" "numpy<2"
    sv/bin/python tools/systolic_peer.py build/weft [--record FILE.json]

`single` is weft's array without double buffering, which is what SCALE-Sim models; `double` is the array as built, where the next
tile's weights march in behind the current ones. docs/systolic.md has the table and what it means."""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from scalesim.scale_sim import scalesim

SHAPES = [  # rows, cols, M, N, K
    (8, 8, 16, 8, 8), (8, 8, 5, 20, 13), (16, 16, 64, 64, 64), (16, 32, 100, 70, 50), (32, 32, 128, 128, 128),
    (32, 16, 33, 65, 97), (128, 128, 256, 256, 256), (128, 128, 100, 300, 200),
]
CONFIG = """[general]
run_name = r
[architecture_presets]
ArrayHeight: {rows}
ArrayWidth: {cols}
IfmapSramSzkB: 8192
FilterSramSzkB: 8192
OfmapSramSzkB: 8192
IfmapOffset: 0
FilterOffset: 10000000
OfmapOffset: 20000000
Dataflow: {flow}
Bandwidth: 100000
ReadRequestBuffer: 512
WriteRequestBuffer: 512
[layout]
IfmapCustomLayout: False
FilterCustomLayout: False
IfmapSRAMBankBandwidth: 10
IfmapSRAMBankNum: 10
IfmapSRAMBankPort: 2
FilterSRAMBankBandwidth: 10
FilterSRAMBankNum: 10
FilterSRAMBankPort: 2
[sparsity]
SparsitySupport: false
SparseRep: ellpack_block
OptimizedMapping: false
BlockSize: 8
RandomNumberGeneratorSeed: 40
[run_presets]
InterfaceBandwidth: CALC
UseRamulatorTrace: False
"""


def by_scalesim(rows, cols, m, n, k, flow):
    with tempfile.TemporaryDirectory() as folder:
        f = pathlib.Path(folder)
        (f / "c.cfg").write_text(CONFIG.format(rows=rows, cols=cols, flow=flow))
        (f / "t.csv").write_text(f"Layer, M, N, K,\nproduct, {m}, {n}, {k},\n")
        (f / "l.csv").write_text("Layer, A, B, C,\n")
        here = os.getcwd()
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            s = scalesim(save_disk_space=True, verbose=False, config=str(f / "c.cfg"), topology=str(f / "t.csv"),
                         layout=str(f / "l.csv"), input_type_gemm=True)
            s.run_scale(top_path=folder)
        took = time.perf_counter() - start
        os.chdir(here)
        report = next(f.rglob("COMPUTE_REPORT.csv")).read_text().splitlines()
        row = dict(zip((c.strip() for c in report[0].split(",")), (c.strip() for c in report[1].split(","))))
        return int(float(row["Total Cycles"])), took


def by_weft(weft, rows, cols, m, n, k, flow, *options):
    p = subprocess.run([weft, "systolic", str(m), str(n), str(k), "--rows", str(rows), "--cols", str(cols), "--flow", flow, "--json",
                        *options], capture_output=True, text=True, check=True)
    return json.loads(p.stdout.splitlines()[0])


def main():
    weft, recorded = sys.argv[1], []
    print(f"{'array':>9} {'M x N x K':>15} flow {'SCALE-Sim':>10} {'single':>9} {'double':>9} {'utilised':>8} {'SCALE-Sim s':>11} {'weft s':>10} {'times':>8}")
    for flow in ("ws", "os"):
        for rows, cols, m, n, k in SHAPES:
            cycles, took = by_scalesim(rows, cols, m, n, k, flow)
            single, double = (by_weft(weft, rows, cols, m, n, k, flow, *o) for o in (["--single"], []))
            ours = single["seconds"]
            print(f"{rows:4}x{cols:<4} {m:5}x{n:<4}x{k:<4} {flow:>4} {cycles:10} {single['cycles']:9} {double['cycles']:9} "
                  f"{100 * double['utilisation']:7.1f}% {took:11.3f} {ours:10.6f} {took / ours:8.0f}")
            recorded.append([flow, rows, cols, m, n, k, cycles])
    if "--record" in sys.argv:
        pathlib.Path(sys.argv[sys.argv.index("--record") + 1]).write_text(
            json.dumps({"source": "SCALE-Sim 3.0.0 (PyPI), COMPUTE_REPORT.csv, Total Cycles", "columns": "flow rows cols m n k cycles",
                        "runs": recorded}) + "\n")


if __name__ == "__main__":
    main()
