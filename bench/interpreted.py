#!/usr/bin/env python3
"""Compiles the workloads on weft, runs none, and lists what would run on the interpreter: interpreted.py [WORKLOAD ...]

Exits with 1 when there is something. Needs jax, JAX_PLATFORMS is set here."""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    sys.path[:0] = [str(HERE), str(HERE / "peers")]
    import workloads
    if sys.argv[1:2] == ["--compile"]:
        import by_jax
        return by_jax.compile_only(workloads.WORKLOADS[sys.argv[2]]())
    env = dict(os.environ, JAX_PLATFORMS="weft", WEFT_DEVICE="cpu", WEFT_VERBOSE="2", WEFT_CACHE="0", JAX_ENABLE_COMPILATION_CACHE="0")
    bad = 0
    for name in sys.argv[1:] or workloads.WORKLOADS:
        r = subprocess.run([sys.executable, __file__, "--compile", name], env=env, capture_output=True, text=True)
        found = sorted({line for line in r.stderr.splitlines() if line.startswith("weft,interpreter")})
        bad += bool(found) or r.returncode != 0
        print(f"{name}: {'compiled' if not found else ''}" if r.returncode == 0 else f"{name}: {r.stderr.strip().splitlines()[-1]}", flush=True)
        for line in found:
            print(f"  {line}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
