"""weft: where the engine's shared library is.

    import weft
    weft.library_path()   # .../libpjrt_weft.so, a PJRT plugin
    weft.step_time(compiled)   # seconds on the virtual chip
    weft.folder()         # of an installed wheel: include/weft.h, lib/libweft.so, lib/pkgconfig, bin/weft
"""
import os
import pathlib

__version__ = "0.1.0"

LIBRARY = "libpjrt_weft.so"


def library_path() -> str:
    """Path of the PJRT plugin: $WEFT_PLUGIN, else beside this file (as installed), else a build in the source tree."""
    if path := os.environ.get("WEFT_PLUGIN"):
        return path
    here = pathlib.Path(__file__).resolve().parent
    for path in (here / LIBRARY, here.parent.parent / "build" / LIBRARY):
        if path.exists():
            return str(path)
    raise FileNotFoundError(f"{LIBRARY} is neither in {here} nor in build/; build weft, or set WEFT_PLUGIN to its path")


def step_time(compiled) -> float:
    """Seconds that one run of a compiled program takes on the virtual chip that it is for, by the chip's model, however long
    this machine computes its numbers: of what jax.jit(f).lower(*args).compile() gives."""
    cost = compiled.cost_analysis()
    cost = cost[0] if isinstance(cost, list) else cost
    if not cost or "optimal_seconds" not in cost:
        raise ValueError("no time is known of this program: WEFT_DEVICE must be a chip (`weft chips`), and the program one that its "
                         "model covers")
    return float(cost["optimal_seconds"])


def folder() -> str:
    """Path of the installed package: include, lib and bin are for C programs."""
    return str(pathlib.Path(__file__).resolve().parent)
