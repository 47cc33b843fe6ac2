#!/usr/bin/env python3
"""Compiles StableHLO programs with XLA for a GPU that is not there and tells what it plans: tests/sim/gpu/README.md.

usage: gpu_compile.py CHIP TARGET SET OUT.csv FILE.mlir...

CHIP is the name in the table, SET what the programs are called there. TARGET describes it: a GpuTargetConfigProto as text, as in XLA's xla/backends/gpu/target_config/specs. Rows are
added to OUT.csv; programs that it has are left out. Needs `pip install "jax[cuda13]"`, no device."""
import csv
import os
import pathlib
import re
import sys

# without a device nothing can be tried: cuBLAS, not Triton's products, is what large programs get
os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false " + os.environ.get("XLA_FLAGS", "")
os.environ["JAX_PLATFORMS"] = "cpu"
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax.experimental import topologies
from jaxlib.mlir import ir

HEAD = ["program", "chip", "set", "peak_bytes", "temp_bytes", "workspace", "kernels"]
FREE = {"parameter", "get-tuple-element", "tuple", "constant", "bitcast", "while", "conditional"}


def kernels(hlo):
    """Operations of the entry that run: those of loops' bodies are not counted."""
    entry = re.search(r"\nENTRY [^\n]*\{\n(.*?)\n\}", hlo, re.S).group(1)
    return sum(op not in FREE for op in re.findall(r"^\s*(?:ROOT )?%[\w.\-]+ = (?:\(.*?\)|\S+) ([\w\-]+)\(", entry, re.M))


def plan(device, path):
    with mlir.make_ir_context():
        module = ir.Module.parse(path.read_text())
        options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
        program = compiler.backend_compile_and_load(device.client, module, xla_client.DeviceList((device,)), options, [])
    m, hlo = program.get_compiled_memory_stats(), program.hlo_modules()[0].to_string()
    workspace = max([int(b) for b in re.findall(r"s8\[(\d+)\]\{0\}\) custom-call", hlo)], default=0)
    return [m.peak_memory_in_bytes, m.temp_size_in_bytes, workspace, kernels(hlo)]


def main():
    chip, target, group, out, *files = sys.argv[1:]
    target, out, files = pathlib.Path(target), pathlib.Path(out), map(pathlib.Path, files)
    device = topologies.get_topology_desc(platform="cuda", target_config=target.read_text(), topology="1x1x1").devices[0]
    done = {(r["program"], r["chip"]) for r in csv.DictReader(out.open())} if out.exists() else set()
    with out.open("a", newline="") as f:
        w = csv.writer(f)
        if not f.tell():
            w.writerow(HEAD)
        for path in files:
            if (path.stem, chip) in done:
                continue
            try:
                w.writerow([path.stem, chip, group] + plan(device, path))
            except Exception as e:
                print(f"{path.stem}: {str(e)[:200]}", file=sys.stderr)
            f.flush()


if __name__ == "__main__":
    main()
