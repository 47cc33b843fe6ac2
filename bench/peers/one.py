#!/usr/bin/env python3
"""One measurement in a process of its own: one.py FRAMEWORK WORKLOAD [--threads N] [--steps N] [--start]. Prints a line of JSON.

FRAMEWORK is a module by_FRAMEWORK.py here, with `open(threads)` that starts it and gives its versions, and
`prepare(work, mode)` that gives a function of no arguments: one step, finished when it returns; what it gives back, `value`
turns into one number: the loss, or the mean size of an operation's results. `extra` gives, once all is run, what else is known: flops, bytes,
and for compilers that can be asked, lower_s and compiler_s, of the first step's time what tracing and then compiling took, and backend_s,
what of compiler_s is the backend's and not the framework's around it. With --start all ends with the first step: a start, and no more."""
import argparse
import importlib
import json
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def peak_rss_mb():
    """Of this process alone: ru_maxrss would count its parent from before exec."""
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0


def pin(threads):
    """One rule for everybody: N threads on N processors."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "WEFT_THREADS"):
        os.environ[name] = str(threads)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("framework")
    ap.add_argument("workload")
    ap.add_argument("--mode", default="")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--steps", type=int, default=0)
    ap.add_argument("--start", action="store_true")
    a = ap.parse_args()
    pin(a.threads)
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    import workloads
    work = workloads.WORKLOADS[a.workload]()
    framework = importlib.import_module(f"by_{a.framework}")
    versions = framework.open(a.threads)
    step, value, extra = framework.prepare(work, a.mode)
    t0, c0 = time.perf_counter(), time.process_time()
    step()
    first, first_cpu = time.perf_counter() - t0, time.process_time() - c0
    start = {"first_s": first, "first_cpu_s": first_cpu}
    if a.start:
        return print(json.dumps({**start, **extra()}))
    out = step()
    wall, cpu = [], []
    for _ in range(a.steps or work.steps):
        out = None  # what the last call gave back is not kept beside the next one's
        t0, c0 = time.perf_counter(), time.process_time()
        out = step()
        wall.append(time.perf_counter() - t0)
        cpu.append(time.process_time() - c0)
    typical, typical_cpu = statistics.median(wall), statistics.median(cpu)
    rss = peak_rss_mb()
    print(json.dumps({"wall_ms": typical * 1e3, "cpu_ms": typical_cpu * 1e3, "least_ms": min(wall) * 1e3,
                      **start, "rss_mb": rss, "check": value(out), "versions": versions, **extra()}))


if __name__ == "__main__":
    main()
