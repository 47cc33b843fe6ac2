"""What a step says besides what it computes: tf.print and tf.summary. No device can, so the host does.

In the step itself the program gives the values, and the host says them when the step is over, for each replica (summaries: for the first,
as tf.distribute has it). In loops, branches and functions of its own, and outside of strategy.run, it calls the host."""
import contextlib
import functools
import importlib
import inspect
import threading
import traceback

import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import summary_ops_v2

from weft.tf import callback, lines, runtime, trace

SUMMARIES = ("audio", "histogram", "image", "scalar", "text", "write")
_here = threading.local()


class Effects:
    """Of one traced step: calls, and the tensors that they take."""

    def __init__(self):
        self.graph = tf.compat.v1.get_default_graph()
        self.calls, self.tensors = [], []  # (function, structure, its flat values: a tensor by its place, how, only the first replica)

    def add(self, function, args, kwargs, context, first):
        flat, taken = _flat(args, kwargs)
        places = [None] * len(flat)
        for i in taken:
            places[i] = len(self.tensors)
            self.tensors.append(flat[i])
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


def _flat(args, kwargs):
    """A call's values, and which of them are tensors of the graph: what a variable is when the call is made is one."""
    flat = tf.nest.flatten((args, kwargs), expand_composites=True)
    places = [i for i, x in enumerate(flat) if (tf.is_tensor(x) or hasattr(x, "__tf_tensor__")) and not isinstance(x, ops.EagerTensor)]
    for i in places:
        flat[i] = tf.convert_to_tensor(flat[i])
    return flat, places


def _call(function, args, kwargs, context, first):
    """The call itself, made by the program where it gets there. None: it takes what no program has."""
    flat, places = _flat(args, kwargs)
    tensors = [flat[i] for i in places]
    if not all(map(callback.takes, tensors)):
        return None
    replica = tf.distribute.get_replica_context()
    if first and replica is not None and replica.num_replicas_in_sync > 1:
        tensors.append(tf.convert_to_tensor(replica.replica_id_in_sync_group))

    def happen(*arrays):
        if arrays[len(places):] and arrays[-1]:
            return
        values = list(flat)
        for i, x in zip(places, arrays):
            values[i] = tf.constant(x)
        given, named = tf.nest.pack_sequence_as((args, kwargs), values, expand_composites=True)
        with context():
            function(*given, **named)
    return callback.call(happen, tensors)


def _deferred(original, name, context_now, first):
    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        effects = getattr(_here, "effects", None)
        if trace.owner() is None:
            return original(*args, **kwargs)
        if effects is not None and tf.compat.v1.get_default_graph() is effects.graph:
            effects.add(original, args, kwargs, context_now(), first)
            return tf.no_op()
        called = _call(original, args, kwargs, context_now(), first)
        if called is None and effects is None:
            return original(*args, **kwargs)
        if called is None:
            runtime.say(f"{name}{_line()} is left out: it takes a string that is made in a loop, a branch or a function of its own within the step")
        return called or tf.no_op()
    return tf.autograph.experimental.do_not_convert(wrapped)


def _writer():
    """The writer of summaries now, to be had again."""
    writer = summary_ops_v2._summary_state.writer
    return contextlib.nullcontext if writer is None else writer.as_default


def _with_step(summary):
    """A function of tf.summary that is always given its step, which may be a tensor of the graph."""
    signature = inspect.signature(summary)

    @functools.wraps(summary)
    def wrapped(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        if bound.arguments.get("step") is None:
            bound.arguments["step"] = tf.summary.experimental.get_step()
        return deferred(*bound.args, **bound.kwargs)
    deferred = _deferred(summary, f"tf.summary.{summary.__name__}", _writer, first=True)
    return tf.autograph.experimental.do_not_convert(wrapped)


def install():
    tf.print = _deferred(tf.print, "tf.print", lambda: contextlib.nullcontext, first=False)
    modules = {tf.summary, importlib.import_module("tensorflow.summary")}  # whoever imports the latter puts it in the former's place
    for name in SUMMARIES:
        deferred = _with_step(getattr(tf.summary, name))
        for module in modules:
            setattr(module, name, deferred)
    writer = summary_ops_v2._ResourceSummaryWriter
    writer.flush = _deferred(writer.flush, "flush", lambda: contextlib.nullcontext, first=True)
