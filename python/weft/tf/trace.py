"""What is being traced: a program of weft's, or a graph that TensorFlow runs on the host; and the order of things in the latter.

TensorFlow orders the operations of a graph by the variables that they take. A program's operation takes none (its variables
are on the devices), so it is ordered by hand: after every stateful operation that is there when it is made, and before what
fetches a variable later.
"""
import contextlib
import threading

import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import control_flow_ops

_here = threading.local()


class _Context(control_flow_ops.XLAControlFlowContext):
    """Within a program: functions that the host has traced before are traced again, without what only the host can do."""

    def RequiresUniqueFunctionRetracing(self):  # noqa: N802 (TensorFlow's name)
        return True


@contextlib.contextmanager
def program(owner):
    """Around the trace of a program of `owner` (a strategy)."""
    before = getattr(_here, "owner", None)
    _here.owner = owner
    try:
        yield
    finally:
        _here.owner = before


@contextlib.contextmanager
def compiled():
    """Within a program's graph: functions that are called know that they are compiled."""
    context = _Context()
    context.Enter()
    try:
        yield
    finally:
        context.Exit()


def owner():
    """Whose program is being traced here; None: none. Lifted out of it (init_scope) is not within."""
    return None if tf.executing_eagerly() else getattr(_here, "owner", None)


def on_host():
    """Is a graph being made that TensorFlow will run on the host?"""
    return owner() is None and not tf.executing_eagerly() and tf.compat.v1.executing_eagerly_outside_functions()


def host_graphs():
    """The graph that is being made and those around it, the outermost first."""
    graphs, graph = [], ops.get_default_graph()
    while graph is not None and graph.building_function:
        graphs.insert(0, graph)
        graph = getattr(graph, "outer_graph", None)
    return graphs


def noted(graph, name, empty):
    """A container of ours that a graph carries; made when there is none."""
    if not hasattr(graph, name):
        setattr(graph, name, empty())
    return getattr(graph, name)


def _programs(graph):
    return noted(graph, "_weft_programs", list)


def programs_in(graph):
    """How many programs' operations a graph has."""
    return len(_programs(graph))


def last_program(graph):
    """The newest of them, as control inputs."""
    return _programs(graph)[-1:]


def before_program(graph):
    """What the next one must come after, as control inputs."""
    return [op for op in graph.get_operations() if op.op_def.is_stateful and op.type != "Placeholder"]


def add_program(graph, op):
    _programs(graph).append(op)
