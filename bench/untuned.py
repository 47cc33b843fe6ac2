#!/usr/bin/env python3
"""Times weft beside JAX's CPU backend on programs.py: untuned.py [PROGRAM ...] [--seconds 1.5] [--warm 1] [--out FILE] [--docs]

Both are devices of one process and take turns, call by call, so that a busy machine is busy for both; a figure is the least of a call, when weft's
code is there: small programs run without until it was made.
--out (bench/results/MACHINE-programs.json) keeps them, --docs writes docs/performance.md. Needs jax and weft's plugin, JAX_PLATFORMS
is set here."""
import argparse
import datetime
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
os.environ.update(JAX_PLATFORMS="weft,cpu", WEFT_DEVICE="cpu", WEFT_CACHE="0", JAX_ENABLE_COMPILATION_CACHE="0")


def started(device, make):
    """What a call of the program on the device is, its answer, seconds to compile and to the first answer."""
    import jax
    with jax.default_device(device):
        fn, arguments = make()
        arguments = jax.device_put(arguments, device)
        lowered, begin = jax.jit(fn).lower(*arguments), time.perf_counter()
        compiled = lowered.compile()
        compile_s = time.perf_counter() - begin
        answer = jax.block_until_ready(compiled(*arguments))
    return (lambda: jax.block_until_ready(compiled(*arguments))), answer, compile_s, time.perf_counter() - begin


def apart(a, b):
    """The largest difference of two answers, over their largest number."""
    import jax
    import numpy as np
    worst = 0.0
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b)):
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        worst = max(worst, float(np.max(np.abs(x - y)) / (np.max(np.abs(y)) + 1e-30))) if x.size else worst
    return worst


def measure(make, seconds, warm):
    import jax
    runs = [started(jax.devices(platform)[0], make) for platform in ("weft", "cpu")]
    end = time.perf_counter() + warm
    while time.perf_counter() < end:
        runs[0][0]()
    best, turns, end = [float("inf")] * 2, 0, time.perf_counter() + seconds
    while turns < 5 or time.perf_counter() < end:
        for i, run in enumerate(runs):
            begin = time.perf_counter()
            run[0]()
            best[i] = min(best[i], time.perf_counter() - begin)
        turns += 1
    return dict(ms=[1e3 * t for t in best], compile_s=[r[2] for r in runs], first_s=[r[3] for r in runs], turns=turns,
                apart=apart(runs[0][1], runs[1][1]))


def main():
    import machine
    import programs
    import report
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("programs", nargs="*")
    ap.add_argument("--seconds", type=float, default=1.5, help="of taking turns")
    ap.add_argument("--warm", type=float, default=1.0, help="seconds before, in which weft's code may be made beside the calls")
    ap.add_argument("--note", help="how the machine was")
    ap.add_argument("--out", default=str(HERE / "results" / f"{machine.short_name()}-programs.json"))
    ap.add_argument("--docs", action="store_true")
    a = ap.parse_args()
    results = report.load(a.out)
    results["machine"] = dict(date=datetime.date.today().isoformat())
    if a.note:
        results["note"] = a.note
    for name in a.programs or programs.PROGRAMS:
        results["runs"][name] = r = measure(programs.PROGRAMS[name], a.seconds, a.warm)
        print(f"{name}: weft {r['ms'][0]:.3g} ms, XLA:CPU {r['ms'][1]:.3g} ms, ratio {r['ms'][1] / r['ms'][0]:.2f}, "
              f"compile {r['compile_s'][1] / r['compile_s'][0]:.1f}, apart {r['apart']:.1e}", flush=True)
        report.save(a.out, results)
    if a.docs:
        pages = report.kept(pathlib.Path(a.out).parent)
        (HERE.parent / "docs" / "performance.md").write_text(report.document(pages))


if __name__ == "__main__":
    main()
