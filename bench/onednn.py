#!/usr/bin/env python3
"""Times weft's convolutions beside oneDNN's: onednn.py DIR [--seconds 2] [--note TEXT] [--out FILE] [--docs]

DIR has include/ and lib/ of oneDNN 3, as the packages onednn-devel and onednn of PyPI unpack (with the libraries that these ask for:
put DIR/lib into LD_LIBRARY_PATH). The two take turns in one process; a figure is the least of a call. weft's gradients go through JAX
and hold the gradient of the sum of squares, oneDNN's are the three convolutions alone."""
import argparse
import ctypes
import datetime
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "peers"), str(HERE.parent / "python")]
os.environ.update(JAX_PLATFORMS="weft", WEFT_DEVICE="cpu", WEFT_CACHE="0", JAX_ENABLE_COMPILATION_CACHE="0")

# images, side, channels in and out, window, step, depthwise
SHAPES = {"conv_stem": (8, 224, 3, 64, 7, 2, 0), "conv_3x3_56": (8, 56, 64, 64, 3, 1, 0), "conv_3x3_14": (8, 14, 256, 256, 3, 1, 0),
          "conv_1x1_14": (8, 14, 1024, 256, 1, 1, 0), "conv_depthwise": (16, 28, 192, 192, 3, 1, 1)}
ROWS = ("conv_stem", "conv_3x3_56", "conv_3x3_14", "conv_1x1_14", "conv_3x3_56_grad", "conv_3x3_14_grad", "conv_1x1_14_grad",
        "conv_depthwise_grad")


def library(folder):
    to = pathlib.Path(tempfile.mkdtemp()) / "onednn.so"
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-I", f"{folder}/include", str(HERE / "onednn.cpp"), "-o", str(to), "-L", f"{folder}/lib",
                    "-ldnnl", f"-Wl,-rpath,{folder}/lib"], check=True)
    return ctypes.CDLL(str(to))


def weft(name, bf16):
    import by_jax
    import jax
    import workloads
    work = workloads.WORKLOADS[name]()
    work.bf16 = bf16
    fn, arguments, _ = by_jax.program(work)
    jitted, arguments = jax.jit(fn), jax.device_put(arguments)
    return lambda: jax.block_until_ready(jitted(*arguments))


def main():
    import machine
    import report
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("folder")
    ap.add_argument("--seconds", type=float, default=2)
    ap.add_argument("--note", help="how the machine was")
    ap.add_argument("--out", default=str(HERE / "results" / f"{machine.short_name()}-onednn.json"))
    ap.add_argument("--docs", action="store_true")
    a = ap.parse_args()
    onednn, version, results = library(a.folder), (ctypes.c_int * 3)(), report.load(a.out)
    onednn.version(version)
    results["machine"] = dict(date=datetime.date.today().isoformat(), onednn=".".join(map(str, version)))
    if a.note:
        results["note"] = a.note
    for name, bf16 in ((n, b) for n in ROWS for b in (False, True)):
        made = onednn.make(*SHAPES[name.removesuffix("_grad")], name.endswith("_grad"), bf16)
        runs, best = (weft(name, bf16), lambda: onednn.run(made)), [float("inf")] * 2
        for run in runs * 2:
            run()
        end = time.perf_counter() + a.seconds
        while time.perf_counter() < end:
            for i, run in enumerate(runs):
                begin = time.perf_counter()
                run()
                best[i] = min(best[i], 1e3 * (time.perf_counter() - begin))
        row = name + "_bf16" * bf16
        results["runs"][row] = [min(x, y) for x, y in zip(best, results["runs"].get(row, best))]
        print(f"{row}: weft {best[0]:.3g} ms, oneDNN {best[1]:.3g} ms, ratio {best[1] / best[0]:.2f}", flush=True)
        report.save(a.out, results)
    if a.docs:
        (HERE.parent / "docs" / "performance.md").write_text(report.document(report.kept(pathlib.Path(a.out).parent)))


if __name__ == "__main__":
    main()
