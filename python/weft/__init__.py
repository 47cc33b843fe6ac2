"""weft: where the engine's shared library is.

    import weft
    weft.library_path()   # .../libpjrt_weft.so, a PJRT plugin
    weft.step_time(compiled)   # seconds on the virtual chip
    weft.virtual_time()   # seconds that the device has computed so far, by the chip's clock
    weft.folder()         # of an installed wheel: include/weft.h, lib/libweft.so, lib/pkgconfig, bin/weft
"""
import ctypes
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


class _Extension(ctypes.Structure):
    """PJRT_Extension_Base; weft's own (pjrt/pjrt.h) have a function after it."""


_Extension._fields_ = [("size", ctypes.c_size_t), ("type", ctypes.c_int32), ("next", ctypes.POINTER(_Extension)),
                       ("function", ctypes.c_void_p)]


class _Api(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("extensions", ctypes.POINTER(_Extension))]


def extension(path, number, function_type):
    """The function of the extension of the plugin's table with that number; None: it has none."""
    get = ctypes.CDLL(path).GetPjrtApi
    get.restype = ctypes.POINTER(_Api)
    at = get().contents.extensions
    while at and at.contents.type != number:
        at = at.contents.next
    return function_type(at.contents.function) if at else None


def virtual_time(device: int = 0) -> float:
    """Seconds that a device has computed since the process began: on a virtual chip by its model, on the CPU by the wall clock.
    What was asked for and has not ended counts on a virtual chip; on the CPU wait first. A loop's step takes the difference:

        begin = weft.virtual_time()
        state = step(state, batch)
        jax.block_until_ready(state)
        seconds = weft.virtual_time() - begin       # of the device; time.perf_counter() has this machine's
    """
    seconds = extension(library_path(), 0x5745434C, ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int))
    if not seconds:
        raise RuntimeError(f"{library_path()} keeps no clock: it is of another version than this package")
    return seconds(device)


def device_count() -> int:
    """Devices that WEFT_DEVICE gives this process, without opening them. 0: it names none."""
    count = extension(library_path(), 0x5745434E, ctypes.CFUNCTYPE(ctypes.c_int))
    if not count:
        raise RuntimeError(f"{library_path()} does not count its devices: it is of another version than this package")
    return count()


def folder() -> str:
    """Path of the installed package: include, lib and bin are for C programs."""
    return str(pathlib.Path(__file__).resolve().parent)
