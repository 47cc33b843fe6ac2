#!/usr/bin/env python3
"""llm.c (C with OpenMP) on the GPT-2 workloads. BENCH_LLMC names its checkout, CC the compiler. Prints what one.py prints."""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import one

HERE = pathlib.Path(__file__).resolve().parent
PADDED = 50304  # its rows of the embedding


def checkpoint(p, folder):
    """Its format: 256 integers, then every parameter, those of the layers layer after layer; dense weights [out, in]."""
    import numpy as np
    vocab, width = p["wte"]["table"].shape
    layers = len(p["h"])
    context = p["wpe"]["table"].shape[0]
    head = np.zeros(256, np.int32)
    head[:8] = 20240326, 3, context, vocab, layers, width // 64, width, PADDED
    table = np.zeros((PADDED, width), np.float32)
    table[:vocab] = p["wte"]["table"]
    flip = lambda x: np.ascontiguousarray(x.T)
    fields = [lambda h: h["n1"]["gain"], lambda h: h["n1"]["bias"]]
    for name in ("qkv", "o"):
        fields += [lambda h, name=name: flip(h[name]["w"]), lambda h, name=name: h[name]["b"]]
    fields += [lambda h: h["n2"]["gain"], lambda h: h["n2"]["bias"]]
    for name in ("up", "down"):
        fields += [lambda h, name=name: flip(h[name]["w"]), lambda h, name=name: h[name]["b"]]
    with open(folder / "checkpoint", "wb") as f:
        for x in (head, table, p["wpe"]["table"], *(field(h) for field in fields for h in p["h"]), p["last"]["gain"], p["last"]["bias"]):
            f.write(x.tobytes())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("workload")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--steps", type=int, default=0)
    a = ap.parse_args()
    one.pin(a.threads)
    sys.path.insert(0, str(HERE.parent))
    import workloads
    work = workloads.WORKLOADS[a.workload]()
    params, (tokens, labels) = work.values()
    steps, o = 2 + (a.steps or work.steps), work.optimizer
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        t0 = time.perf_counter()
        subprocess.run([os.environ.get("CC", "gcc"), "-Ofast", "-march=native", "-fopenmp", "-DOMP", "-w", "-I", os.environ["BENCH_LLMC"],
                        HERE / "llmc.c", "-o", folder / "llmc", "-lm"], check=True)
        compiling = time.perf_counter() - t0
        checkpoint(params, folder)
        (folder / "tokens").write_bytes(tokens.tobytes() + labels.tobytes())
        r = subprocess.run([folder / "llmc", folder / "checkpoint", folder / "tokens", *map(str, tokens.shape), str(steps), str(o["lr"]),
                            str(o["beta1"]), str(o["beta2"]), str(o["eps"])], capture_output=True, text=True, check=True)
    rows = [x for x in (line.split() for line in r.stdout.splitlines()) if len(x) == 3 and x[0][0].isdigit()]
    rows = [list(map(float, x)) for x in rows][-steps:]
    print(json.dumps({"wall_ms": statistics.median(x[1] for x in rows[2:]) * 1e3, "cpu_ms": statistics.median(x[2] for x in rows[2:]) * 1e3,
                      "compile_s": compiling, "rss_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, "check": rows[-1][0]}))


if __name__ == "__main__":
    main()
