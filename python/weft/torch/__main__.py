"""A PyTorch script written for "cuda", on a virtual GPU:

    WEFT_DEVICE=A100 python -m weft.torch train.py --epochs 3
    python -m weft.torch --capture step.mlirbc train.py        # its training step as StableHLO, computing nothing

Tensors of device "cuda" become PyTorch/XLA's; what the script does up to an optimizer's step is one program. `weft estimate train.py`
uses the second form.
"""
import argparse
import os
import pathlib
import runpy
import shutil
import sys
import tempfile

MADE = 2  # in its first step an optimizer makes its slots; the second is the one that repeats


def arguments():
    parser = argparse.ArgumentParser(prog="python -m weft.torch", description=__doc__.split("\n\n")[0],
                                     usage="%(prog)s [--capture FILE] script.py [arguments of the script]")
    parser.add_argument("--capture", metavar="FILE", help="write the training step and stop; nothing is computed")
    parser.add_argument("script")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    return parser.parse_args()


class Captured(SystemExit):
    """The script has done what was wanted of it."""


def largest(files):
    """Of the programs that a step made: beside itself there are small ones, of values that the script looked at."""
    return max(files, key=lambda f: f.stat().st_size, default=None)


def capture_after(cuda, names, to):
    """Writes the program of the optimizer's step number MADE, then ends the script."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-step-"))
    os.environ["WEFT_SAVE_PROGRAMS"] = str(folder)
    earlier = []

    def after(optimizer, *_):
        if len(earlier) + 1 == MADE:
            names.keep_frames()
        cuda.sync()
        earlier.append(set(folder.iterdir()))
        if len(earlier) < MADE:
            return names.give(optimizer)
        last = earlier[-1] - earlier[-2] or earlier[-1]  # a step like the one before it is not compiled again
        if not last:
            sys.exit(f"python -m weft.torch: step {MADE} computed nothing on the device: does the model go to \"cuda\"?")
        shutil.copy(largest(last), to)
        raise Captured(0)

    cuda.around_steps(after)
    return folder


def main():
    args = arguments()
    from weft.torch import names
    if args.capture:
        names.record()
        os.environ["WEFT_DEVICE"] = "null"
        os.environ.pop("PJRT_DEVICE", None)
    elif not os.environ.get("WEFT_DEVICE"):
        sys.exit("python -m weft.torch: WEFT_DEVICE names the virtual GPU, for example WEFT_DEVICE=A100-80GB")
    from weft.torch import cuda
    device = cuda.install()
    folder = capture_after(cuda, names, args.capture) if args.capture else None
    if not args.capture:
        cuda.around_steps(cuda.sync)
    sys.argv = [args.script, *args.rest]
    sys.path[0] = str(pathlib.Path(args.script).resolve().parent)
    try:
        with device:
            runpy.run_path(args.script, run_name="__main__")
        if args.capture:
            sys.exit(f"python -m weft.torch: {args.script} ended before step {MADE} of an optimizer")
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
