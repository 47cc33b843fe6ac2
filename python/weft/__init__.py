"""weft: where the engine's shared library is.

    import weft
    weft.library_path()   # .../libpjrt_weft.so, a PJRT plugin
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


def folder() -> str:
    """Path of the installed package: include, lib and bin are for C programs."""
    return str(pathlib.Path(__file__).resolve().parent)
