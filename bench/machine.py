"""What this machine is and how fast it can be: the limits that the tables' shares refer to."""
import ctypes
import datetime
import os
import re
import time


def generation(facts):
    """Of AMD's cores, which clouds sell under one name."""
    family = facts.get("cpu family") if facts.get("vendor_id") == "AuthenticAMD" else None
    zen = {"23": "Zen 2", "25": "Zen 4" if "avx512f" in facts.get("flags", "") else "Zen 3", "26": "Zen 5"}.get(family)
    return f" ({zen})" if zen else ""


def cpu_model():
    first = open("/proc/cpuinfo").read().split("\n\n")[0]
    facts = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in first.splitlines())}
    name = re.sub(r"\(R\)|\(TM\)| CPU| Processor", "", facts.get("model name", "unknown CPU")).strip()
    return name + generation(facts)


def widths():
    flags = open("/proc/cpuinfo").read()
    vectors = "AVX-512" if " avx512f" in flags else "AVX2" if " avx2" in flags else "SSE"
    return vectors + (" and AMX" if " amx_bf16" in flags else "")


def short_name():
    return re.sub(r"[^a-z0-9]+", "-", f"{cpu_model()} {widths()}".lower()).strip("-")


def best_of(f, n, threads):
    """Seconds, by CPU time: what others take of the processors meanwhile does not count."""
    times = []
    for _ in range(n):
        t0 = time.process_time()
        f()
        times.append((time.process_time() - t0) / threads)
    return min(times)


def blas(threads):
    """cblas_sgemm of the OpenBLAS that the system has, with that many threads."""
    lib = ctypes.CDLL("libopenblas.so.0")
    lib.openblas_set_num_threads(threads)
    return lib.cblas_sgemm


def limits(threads):
    """(GFLOP/s of f32, GB/s) with that many threads, measured: the best of OpenBLAS's matrix product of 2048, and of a copy."""
    import numpy as np
    keep = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(keep)[-threads:])
    n = 2048
    a, b, c = (np.ones((n, n), np.float32) for _ in range(3))
    at = lambda x: ctypes.c_void_p(x.ctypes.data)
    gemm, f = blas(threads), ctypes.c_float
    flops = 2 * n ** 3 / best_of(lambda: gemm(101, 111, 111, n, n, n, f(1), at(a), n, at(b), n, f(0), at(c), n), 6, threads) / 1e9
    import concurrent.futures
    size = 1 << 28
    x, y = np.ones(size, np.uint8), np.empty(size, np.uint8)
    part = size // threads
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        copy = lambda i: np.copyto(y[i * part:(i + 1) * part], x[i * part:(i + 1) * part])
        rate = 2 * size / best_of(lambda: list(pool.map(copy, range(threads))), 6, threads) / 1e9
    os.sched_setaffinity(0, keep)
    return flops, rate


def describe(known=None):
    """What the results say of the machine; limits that were measured on it before stay."""
    m = {"cpu": cpu_model(), "vectors": widths(), "cpus": os.cpu_count(), "limits": {}}
    if known and all(known[k] == m[k] for k in ("cpu", "vectors", "cpus")):
        m["limits"] = known["limits"]
    for threads in (1, 2):
        if str(threads) not in m["limits"] and threads <= os.cpu_count():
            m["limits"][str(threads)] = [round(x, 1) for x in limits(threads)]
    return dict(m, date=str(datetime.date.today()))
