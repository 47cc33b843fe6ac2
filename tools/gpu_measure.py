#!/usr/bin/env python3
"""Runs StableHLO programs on the first GPU that JAX finds and tells what each took: tests/sim/gpu/README.md.

usage: gpu_measure.py OUT.jsonl.gz SECONDS FILE.mlir...

One JSON line a program: microseconds a call when calls wait one behind the other, kernels with their durations of three calls, the
compiler's memory statistics and its HLO; with pynvml joules a call, by the board's own counter, while calls follow each other for 0.6 s. After
half of the time no further one is compiled. Needs JAX with CUDA, and takes random arguments
from PyTorch where that is there, which is faster than from the host."""
import concurrent.futures as futures
import glob
import gzip
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import ml_dtypes
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib.mlir import ir

try:
    import torch
except ImportError:
    torch = None
try:
    import pynvml
    pynvml.nvmlInit()
    board = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlDeviceGetTotalEnergyConsumption(board)
except Exception:  # not there, or a board without a counter
    board = None

TYPES = {"i1": np.bool_, "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16,
         "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
         **{f"{sign}i{bits}": np.dtype(f"{sign}int{bits}").type for sign in ("", "u") for bits in (8, 16, 32, 64)}}
TORCH = {"f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "i8": "int8", "ui8": "uint8", "i32": "int32", "ui32": "int32"}
BATCH, HELD = 8, 20e9  # programs, and bytes of arguments, that wait for a trace
COMPILING = 1 / 2
METERED_US = 300  # shorter calls wait for the host
GATHER = re.compile(r'"stablehlo.gather".*start_index_map = \[0\].*: \(tensor<(\d+)x')


def signature(module):
    """Shapes and types of main's arguments; which result takes an argument's memory."""
    main = next(o for o in module.body.operations if "sym_name" in o.attributes and ir.StringAttr(o.attributes["sym_name"]).value == "main")
    types = [ir.RankedTensorType(t) for t in ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).inputs]
    given = {}
    for i, a in enumerate(ir.ArrayAttr(main.attributes["arg_attrs"]) if "arg_attrs" in main.attributes else ()):
        attributes = ir.DictAttr(a)
        if "tf.aliasing_output" in attributes:
            given[i] = ir.IntegerAttr(attributes["tf.aliasing_output"]).value
    return [(tuple(t.shape), str(t.element_type)) for t in types], given


def argument(device, shape, kind, seed, below, squares):
    """Numbers of which a net's steps stay finite, as its multipliers take less power for NaN: weights that keep a layer's scale, and
    indices into the smallest table."""
    scale = max(0.02, np.prod(shape[:-1], dtype=np.float64) ** -0.5) if len(shape) > 1 else 1
    if torch is not None and kind in TORCH and np.prod(shape, dtype=np.int64) > 1 << 16 and device.platform == "gpu":
        dtype = getattr(torch, TORCH[kind])
        if dtype.is_floating_point:
            x = torch.randn(shape, dtype=dtype, device="cuda").mul_(scale)
            x = x.abs_() if squares else x
        else:
            x = torch.randint(0, min(below, 127 if "8" in kind else below), shape, dtype=dtype, device="cuda")
        torch.cuda.synchronize()
        return jax.dlpack.from_dlpack(x.view(torch.uint32) if kind == "ui32" else x)
    random = np.random.default_rng(seed)
    if "f" in kind:
        x = random.standard_normal(shape) * scale
        x = np.abs(x) if squares else x
    else:
        x = random.integers(0, 2 if kind == "i1" else min(below, 100 if "8" in kind else below), shape) if shape else np.full(shape, 1 if kind == "i1" else 3)
    return jax.device_put(np.asarray(x).astype(TYPES[kind]), device)


def squares(shapes, given):
    """Adam's second moments cannot be negative: of the given-away arrays of a shape the last third."""
    found = set()
    for shape in set(shapes):
        same = [i for i in given if shapes[i] == shape]
        if len(same) % 3 == 0:
            found.update(same[2 * len(same) // 3:])
    return found


class Program:
    def __init__(self, device, index, path):
        text = re.sub(r"^module @\S+", f"module @w{index}", pathlib.Path(path).read_text(), count=1, flags=re.M)
        self.row = {"name": pathlib.Path(path).stem}
        self.module, self.device, self.args = f"w{index}", device, None
        self.below = min(map(int, GATHER.findall(text)), default=100)
        with mlir.make_ir_context():
            module = ir.Module.parse(text)
            self.shapes, self.given = signature(module)
            start = time.time()
            options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
            self.run = compiler.backend_compile_and_load(device.client, module, xla_client.DeviceList((device,)), options, [])
            self.row["compile_s"] = round(time.time() - start, 3)

    def bytes(self):
        return sum(np.prod(s, dtype=np.int64) * np.dtype(TYPES[t]).itemsize for s, t in self.shapes)

    def call(self, times=1):
        for _ in range(times):
            results = [r[0] for r in self.run.execute_sharded(self.args).disassemble_into_single_device_arrays()]
            for i, o in self.given.items():
                self.args[i] = results[o]
        for r in results[-1:]:
            r.block_until_ready()

    def time(self):
        memory = self.run.get_compiled_memory_stats()
        self.row["memory"] = {k: getattr(memory, k) for k in dir(memory) if k.endswith("_in_bytes") and not k.startswith("host")}
        self.row["hlo"] = self.run.hlo_modules()[0].to_string()
        positive = squares(self.shapes, self.given)
        self.args = [argument(self.device, *s, i, self.below, i in positive) for i, s in enumerate(self.shapes)]
        self.call()
        start = time.time()
        self.call()
        once = time.time() - start
        walls, calls = [], int(max(2, min(100, 0.04 / max(once, 1e-6))))
        for _ in range(5 if once < 0.1 else 2):
            start = time.time()
            self.call(calls)
            walls.append(1e6 * (time.time() - start) / calls)
        self.row["wall_us"] = round(statistics.median(walls), 2)
        if board is not None and self.row["wall_us"] > METERED_US:
            self.meter(max(1, int(2e4 / self.row["wall_us"])))

    def meter(self, many):
        """Energy between two ticks of the counter."""
        read = lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(board)
        marks, start = [], time.time()
        calls = 0
        for wait in (0, 0.6):
            begun = time.time()
            before = None
            while before is None or read() == before:
                if before is None and time.time() - begun >= wait:
                    before = read()
                self.call(many)
                calls += many
                if time.time() - start > 4:
                    return
            marks.append((time.time(), calls, read()))
        (t0, c0, e0), (t1, c1, e1) = marks
        self.row.update(joules=(e1 - e0) / 1e3 / (c1 - c0), watts=(e1 - e0) / 1e3 / (t1 - t0),
                        clock_mhz=pynvml.nvmlDeviceGetClockInfo(board, pynvml.NVML_CLOCK_SM))


def trace(programs):
    """Kernels of three calls of each program."""
    folder = tempfile.mkdtemp()
    options = jax.profiler.ProfileOptions()
    options.host_tracer_level = options.python_tracer_level = 0
    jax.profiler.start_trace(folder, profiler_options=options)
    for p in programs:
        for _ in range(3):
            p.call()
    jax.profiler.stop_trace()
    found = {p.module: [] for p in programs}
    data = jax.profiler.ProfileData.from_file(glob.glob(folder + "/**/*.xplane.pb", recursive=True)[0])
    for plane in data.planes:
        for line in plane.lines if plane.name.startswith("/device:GPU") else ():
            for e in line.events if line.name.startswith("Stream") else ():
                stats = dict(e.stats)
                if stats.get("hlo_module") in found:
                    found[stats["hlo_module"]].append((e.start_ns, e.duration_ns, e.name, stats.get("hlo_op", ""), stats.get("kernel_details", "")))
    for p in programs:
        p.row["kernels"] = sorted(found[p.module])


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    start, limit, device = time.time(), float(sys.argv[2]), jax.devices()[0]

    def build(job):
        if time.time() - start < limit * COMPILING:
            return Program(device, *job)
        raise TimeoutError("no time to compile")

    pool = futures.ThreadPoolExecutor(os.cpu_count())
    jobs = {pool.submit(build, job): job[1] for job in enumerate(sys.argv[3:])}
    futures.wait(jobs)  # what still compiles tries kernels on the board, beside which nothing can be measured
    waiting, failed = [], 0
    with gzip.open(sys.argv[1], "wt") as out:
        def write():
            if waiting:
                trace(waiting)
            for p in waiting:
                out.write(json.dumps(p.row) + "\n")
                p.args = p.run = None
            out.flush()
            waiting.clear()
            if torch is not None and torch.cuda.is_available():
                torch.cuda.empty_cache()

        for job, path in jobs.items():
            try:
                if time.time() - start > limit:
                    raise TimeoutError("no time to run")
                p = job.result()
                if sum(w.bytes() for w in waiting) + p.bytes() > HELD:
                    write()
                p.time()
                waiting.append(p)
            except Exception as e:  # whatever one program does, the others are measured
                failed += 1
                print(f"{path}: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr)
            if len(waiting) == BATCH:
                write()
        write()
    print(f"{device.device_kind}, JAX {jax.__version__}: {len(jobs) - failed} of {len(jobs)} programs in {time.time() - start:.0f} s")
    sys.exit(failed == len(jobs))


main()
