#!/usr/bin/env python3
"""A step through each door against the same step through JAX on weft, and against the door's own framework.

    bench/doors.py [WORKLOAD ...] [--threads 1] [--rounds 2] [--key cpu] [--out FILE] [--docs]

BENCH_TORCH_XLA, BENCH_TORCH_TPU and BENCH_TF name interpreters that have weft and those packages (tools/doors.sh makes such
environments; weft is installed there by `pip install .`); one that is not given is left out. The figures are medians as in run.py; "cpu" of one
thread is steady on a machine that others use. They are kept in --out (bench/results/MACHINE-doors.json), of which a later run replaces what it
measures; --docs writes docs/performance.md as run.py does."""
import argparse
import os
import pathlib
import sys

import machine
import report
import run
import workloads

ON_WEFT = {"WEFT_DEVICE": "cpu"}
DOORS = {
    "PyTorch/XLA": (["one.py", "torch", "--mode", "xla"], "BENCH_TORCH_XLA", "torch_xla", ON_WEFT),
    "TorchTPU": (["one.py", "torch", "--mode", "tpu"], "BENCH_TORCH_TPU", "torch_tpu", ON_WEFT),
    "TensorFlow": (["one.py", "tensorflow", "--mode", "weft"], "BENCH_TF", "tensorflow", ON_WEFT),
}


def measured(peers, name, a):
    """{peer: ms}; what failed is said and left out."""
    rows = {p: [] for p in peers}
    for _ in range(a.rounds):
        for p in peers:
            rows[p].append(run.measure(p, name, a.threads, [], a.timeout))
    for p, r in rows.items():
        if "error" in r[-1]:
            print(f"{name}, {p}: {r[-1]['error']}", file=sys.stderr)
    return {p: ms for p, r in rows.items() if (ms := report.figure(r, a.key + "_ms"))}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("workloads", nargs="*", default=["mlp_small", "mlp", "mnist_cnn"])
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--rounds", type=int, default=2)
    ap.add_argument("--timeout", type=int, default=300, help="seconds of one measurement")
    ap.add_argument("--key", choices=("wall", "cpu"), default="cpu")
    ap.add_argument("--out", default=str(run.HERE / "results" / f"{machine.short_name()}-doors.json"))
    ap.add_argument("--docs", action="store_true", help="write docs/performance.md from all files beside --out")
    a = ap.parse_args()
    if unknown := [w for w in a.workloads if w not in workloads.WORKLOADS]:
        sys.exit(f"there is no workload {', '.join(unknown)}; there are: {', '.join(workloads.WORKLOADS)}")
    run.PEERS.update(DOORS)
    doors = [d for d in DOORS if os.environ.get(DOORS[d][1])]
    peers = ["weft", *doors, *run.installed(sorted({p for d in doors for p in report.DOORS[d]}))]
    results = report.load(a.out)
    results["machine"] = dict(machine.describe(results.get("machine")), threads=a.threads, key=a.key)
    for name in a.workloads:
        results["runs"].setdefault(name, {}).update(measured(peers, name, a))
        report.save(a.out, results)
    print("\n".join(report.doors_table({n: results["runs"][n] for n in a.workloads})))
    if a.docs:
        (run.ROOT / "docs" / "performance.md").write_text(report.document(report.kept(pathlib.Path(a.out).parent)))


if __name__ == "__main__":
    main()
