#!/usr/bin/env python3
"""The other door: `weft train` doing the training of a workload on made-up data. Prints what one.py prints.

BENCH_WEFT names the command (build/weft otherwise). What differs from the workload's own step: weft's loader makes and sends the
batches, its loop reads every loss, and the learning rate follows a schedule; dropout, clipping and decay are off where the workload
has none. The loss is of other data and weights, so it is not compared."""
import argparse
import json
import os
import pathlib
import resource
import subprocess

import one

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = {
    "mnist_cnn": "mnist --batch 128 --dropout 0",
    "mlp": "mlp --batch 256",
    "lstm": "lstm --batch 32 --length 64 --clip 0",
    "davidnet_128": "davidnet --batch 128 --no-augment",
    "davidnet_512": "davidnet --batch 512 --no-augment",
    "resnet50_8": "resnet50 --batch 8",
    "gpt2_4x64": "gpt2 --batch 4 --length 64 --clip 0 --decay 0",
    "gpt2_4x256": "gpt2 --batch 4 --length 256 --clip 0 --decay 0",
}


def train(options, steps):
    weft = os.environ.get("BENCH_WEFT", str(ROOT / "build" / "weft"))
    command = [weft, "train", *options.split(), "--data", "synthetic", "--steps", str(steps), "--no-eval", "--no-compare", "--json"]
    r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(r.stderr[-300:])
    return json.loads(r.stdout)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("workload", choices=MODELS)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--steps", type=int, default=0)
    a = ap.parse_args()
    one.pin(a.threads)
    r = train(MODELS[a.workload], 2 + (a.steps or 5))
    print(json.dumps({"wall_ms": r["step_s"] * 1e3, "cpu_ms": r["step_cpu_s"] * 1e3, "compile_s": r["compile_s"],
                      "rss_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
