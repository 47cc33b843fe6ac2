"""A PyTorch script written for "cuda", on a virtual GPU:

    WEFT_DEVICE=A100 python -m weft.torch train.py --epochs 3
    python -m weft.torch --capture step.mlirbc train.py        # its training step as StableHLO, computing nothing

Tensors of device "cuda" become PyTorch/XLA's; what the script does up to an optimizer's step is one program. `weft estimate train.py`
uses the second form.
"""
import argparse
import faulthandler
import importlib.util
import os
import pathlib
import runpy
import shutil
import sys
import tempfile
import traceback

MADE = 2  # in its first step an optimizer makes its slots; the second is one that repeats


def say(text):
    sys.exit(f"python -m weft.torch: {text}")


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


class Capture:
    """Waits for a step that repeats, writes its program and ends the script. A step goes from one of an optimizer to its next: where there
    are others (of a discriminator), theirs are in it."""

    def __init__(self, to):
        self.to, self.folder = to, pathlib.Path(tempfile.mkdtemp(prefix="weft-step-"))
        self.seen = []  # programs that there were after each step
        self.first, self.others = None, []  # optimizers
        os.environ["WEFT_SAVE_PROGRAMS"] = str(self.folder)

    def after_step(self, optimizer, *_):
        from weft.torch import names
        from weft.torch.cuda.device import sync
        self.first = self.first or optimizer
        if optimizer is not self.first:
            if optimizer not in self.others:
                self.others.append(optimizer)
            return
        made = MADE + bool(self.others)  # the others make their slots after the first step of this one
        if len(self.seen) + 1 == made:
            names.keep_frames()
        sync()
        self.seen.append(set(self.folder.iterdir()))
        if len(self.seen) < made:
            for one in (optimizer, *self.others):
                names.give(one)
            return
        self.keep(self.seen[-1] - self.seen[-2] or self.seen[-1])  # a step like the one before it is not compiled again

    def keep(self, programs):
        if not programs:
            say(f"step {len(self.seen)} computed nothing on the device: does the model go to \"cuda\"?")
        shutil.copy(largest(programs), self.to)
        raise Captured(0)

    def at_end(self, script):
        """The script ended before. One without an optimizer is of a model in use: its largest program is what it does."""
        programs = list(self.folder.iterdir())
        if self.first or not programs:
            say(f"{script} ended before step {MADE} of an optimizer of torch.optim, and computed nothing else on \"cuda\" that could be taken: "
                "nothing was captured")
        print(f"python -m weft.torch: {script} has no step of an optimizer of torch.optim: the largest of its {len(programs)} programs is taken",
              file=sys.stderr)
        self.keep(programs)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def after_steps(call):
    """Calls it when an optimizer has made a step."""
    from torch.optim import optimizer
    optimizer.register_optimizer_step_post_hook(call)


def line_of_script(script, error):
    """The innermost line of the script, or of a file beside it, that an error came through: "train.py:12: y = f(x)"."""
    folder = pathlib.Path(script).resolve().parent
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if folder in (path := pathlib.Path(frame.filename).resolve()).parents and "site-packages" not in path.parts:
            return f"{path.relative_to(folder)}:{frame.lineno}: {frame.line}"
    return script


def check():
    """Is there what a script needs?"""
    for package in ("torch", "torch_xla"):
        if importlib.util.find_spec(package) is None:
            say(f"{sys.executable} has no {package}: scripts of PyTorch run here by PyTorch/XLA (pip install torch torch_xla, of the versions in "
                "the guide)")


def run(args, capture):
    sys.argv = [args.script, *args.rest]
    sys.path[0] = str(pathlib.Path(args.script).resolve().parent)
    faulthandler.enable()  # what PyTorch/XLA ends the process for has lines as well
    try:
        runpy.run_path(args.script, run_name="__main__")
    except SystemExit as end:
        if capture and end.code == 2 and not args.rest:  # as argparse ends
            say(f"{args.script} asks for arguments: what follows -- is the script's (weft estimate {args.script} -- ...)")
        if end.code or isinstance(end, Captured):
            raise
    except Exception as error:
        traceback.print_exc()
        say(f"{line_of_script(args.script, error)}\n  {'cannot be captured' if args.capture else 'failed'}: {type(error).__name__}: {error}")
    if capture:
        capture.at_end(args.script)


def main():
    args = arguments()
    check()
    from weft.torch import names, source_tree
    source_tree.offer_entry_point()
    if args.capture:
        names.record()
        os.environ["WEFT_DEVICE"] = "null"
        os.environ.pop("PJRT_DEVICE", None)
    elif not os.environ.get("WEFT_DEVICE"):
        say("WEFT_DEVICE names the virtual GPU, for example WEFT_DEVICE=A100-80GB")
    os.environ["USE_TORCH_XLA"] = "0"  # accelerate and transformers are to take CUDA's ways
    from weft.torch import cuda
    device = cuda.install()
    capture = Capture(args.capture) if args.capture else None
    after_steps(capture.after_step if capture else cuda.device.sync)
    try:
        with device:
            run(args, capture)
    finally:
        if capture:
            capture.close()


if __name__ == "__main__":
    main()
