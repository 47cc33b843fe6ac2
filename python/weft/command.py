"""The command `weft` of an installed package: a program of this folder takes the process over."""
import os
import pathlib
import sys


def program() -> str:
    """Path of the program: as installed beside this file, else a build in the source tree."""
    here = pathlib.Path(__file__).resolve().parent
    for path in (here / "bin" / "weft", here.parent.parent / "build" / "weft"):
        if path.exists():
            return str(path)
    raise FileNotFoundError(f"the program weft is neither in {here / 'bin'} nor in build/; install weft again, or build it")


def main():
    path = program()
    os.execv(path, ["weft", *sys.argv[1:]])
