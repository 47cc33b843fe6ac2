"""The training step of a TensorFlow or Keras script, as a program:

    python -m weft.tf --capture step.mlir train.py        # as StableHLO, computing nothing

The script runs as it is until it has made a step twice; `weft estimate train.py` uses this. WEFT_DEVICE says for how many devices
(tpu-v3-8, A100:4); without it for one.
"""
import argparse
import os
import pathlib
import runpy
import sys

MADE = 2  # runs of a program that writes variables: what a script does once is no step of a loop


def arguments():
    parser = argparse.ArgumentParser(prog="python -m weft.tf", description=__doc__.split("\n\n")[0],
                                     usage="%(prog)s --capture FILE script.py [arguments of the script]")
    parser.add_argument("--capture", metavar="FILE", required=True, help="write the training step and stop; nothing is computed")
    parser.add_argument("script")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    return parser.parse_args()


def capture(to):
    """Has the program of the first step that repeats written, then ends the script."""
    from weft.tf import program
    run, runs = program._Job.run, {}

    def counted(self, inputs):
        out = run(self, inputs)
        if self.written:
            runs[self] = runs.get(self, 0) + 1
        if runs.get(self) == MADE:
            pathlib.Path(to).write_text(self.compiled[0].text)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)  # from a thread of TensorFlow's, which would make an error of an exception
        return out
    program._Job.run = counted


def main():
    args = arguments()
    if not os.environ.get("WEFT_DEVICE"):
        os.environ["WEFT_DEVICE"] = "null"
    os.environ["WEFT_PHANTOM"] = "1"
    capture(args.capture)
    sys.argv = [args.script, *args.rest]
    sys.path[0] = str(pathlib.Path(args.script).resolve().parent)
    runpy.run_path(args.script, run_name="__main__")
    sys.exit(f"python -m weft.tf: {args.script} ended before a step that writes variables was made {MADE} times")


if __name__ == "__main__":
    main()
