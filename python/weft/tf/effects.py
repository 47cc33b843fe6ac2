"""What a step says besides what it computes: tf.print and tf.summary within strategy.run. No device can, so the program gives the values,
and the host says them when the step is over, for each replica (summaries: for the first, as tf.distribute has it)."""
import contextlib
import functools
import importlib
import threading
import traceback

import tensorflow as tf
from tensorflow.python.ops import summary_ops_v2

from weft.tf import lines, runtime, trace

SUMMARIES = ("audio", "histogram", "image", "scalar", "text", "write")
_here = threading.local()


class Effects:
    """Of one traced step: calls, and the tensors that they take."""

    def __init__(self):
        self.graph = tf.compat.v1.get_default_graph()
        self.calls, self.tensors = [], []  # (function, structure, its flat values: a tensor by its place, how, only the first replica)

    def add(self, function, args, kwargs, context, first):
        flat = tf.nest.flatten((args, kwargs), expand_composites=True)
        places = [None] * len(flat)
        for i, x in enumerate(flat):
            if tf.is_tensor(x) and not hasattr(x, "numpy"):
                places[i] = len(self.tensors)
                self.tensors.append(x)
        self.calls.append((function, (args, kwargs), flat, places, context, first))

    def happen(self, rows):
        """rows: for each replica what the program gave for the tensors."""
        for function, structure, flat, places, context, first in self.calls:
            for row in rows[:1] if first else rows:
                values = [x if p is None else row[p] for x, p in zip(flat, places)]
                args, kwargs = tf.nest.pack_sequence_as(structure, values, expand_composites=True)
                with context():
                    function(*args, **kwargs)


@contextlib.contextmanager
def collected():
    """Within the trace of a step."""
    before = getattr(_here, "effects", None)
    _here.effects = Effects()
    try:
        yield _here.effects
    finally:
        _here.effects = before


def _line():
    at = next((f for f in reversed(traceback.extract_stack()) if lines.is_users(f.filename)), None)
    return f" at {at.filename}:{at.lineno}" if at else ""


def _deferred(original, name, context_now, first):
    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        effects = getattr(_here, "effects", None)
        if effects is None or trace.owner() is None:
            return original(*args, **kwargs)
        if tf.compat.v1.get_default_graph() is effects.graph:
            effects.add(original, args, kwargs, context_now(), first)
        else:
            runtime.say(f"{name}{_line()} is left out: it is in a loop, a branch or a function of its own within the step")
        return tf.no_op()
    return tf.autograph.experimental.do_not_convert(wrapped)


def _writer():
    """The writer and step of summaries now, to be had again."""
    writer, step = summary_ops_v2._summary_state.writer, tf.summary.experimental.get_step()
    if writer is None:
        return contextlib.nullcontext
    return lambda: writer.as_default(step)


def install():
    tf.print = _deferred(tf.print, "tf.print", lambda: contextlib.nullcontext, first=False)
    modules = {tf.summary, importlib.import_module("tensorflow.summary")}  # whoever imports the latter puts it in the former's place
    for name in SUMMARIES:
        deferred = _deferred(getattr(tf.summary, name), f"tf.summary.{name}", _writer, first=True)
        for module in modules:
            setattr(module, name, deferred)
    writer = summary_ops_v2._ResourceSummaryWriter
    writer.flush = _deferred(writer.flush, "flush", lambda: contextlib.nullcontext, first=True)
