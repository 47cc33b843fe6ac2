"""What is being traced: a program of weft's, or a graph that TensorFlow runs on the host; and the order of things in the latter.

TensorFlow orders the operations of a graph by the variables that they take. A program's operation takes none (its variables
are on the devices), so it is ordered by hand: after every stateful operation that is there when it is made, and by a token, a
variable of the host's that programs and fetches take.
"""
import contextlib
import functools
import threading

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import function_context
from tensorflow.python.framework import ops
from tensorflow.python.ops import control_flow_ops, control_flow_util, handle_data_util

_here = threading.local()


class NotCompiled(ValueError):
    """TensorFlow's bridge cannot make a program of a function; it says why. node: the name of the operation that it stopped at, where it
    says one."""

    def __init__(self, why, node=None):
        super().__init__(why)
        self.node = node


class HostOnly(Exception):
    """What is being traced cannot be a program; it says why."""


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
    """Within a program's graph: what TensorFlow does otherwise when XLA compiles, it does."""
    context = control_flow_ops.XLAControlFlowContext()
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


@contextlib.contextmanager
def exporting():
    """Around the trace of a function that is asked for without being called: what it is for is to be saved."""
    before = getattr(_here, "exporting", False)
    _here.exporting = True
    try:
        yield
    finally:
        _here.exporting = before


def programs_may_run():
    """May programs run between the call of the graph that is being made and what is made now? In a part of it (a loop's body) one
    that comes later may have run in the round before."""
    graphs = host_graphs()
    return not getattr(_here, "exporting", False) and (len(graphs) > 1 or any(programs_in(g) for g in graphs))


def noted(graph, name, empty):
    """A container of ours that a graph carries; made when there is none."""
    if not hasattr(graph, name):
        setattr(graph, name, empty())
    return getattr(graph, name)


def programs_in(graph):
    """How many programs' operations a graph has, with those of its parts and of what it calls."""
    return getattr(graph, "_weft_programs", 0)


def of_this_process(graph):
    """Does a graph of the host's call into this process? It cannot be saved then."""
    return hasattr(graph, "_weft_calls")


# ---- order in a graph of the host's ------------------------------------------------------------------------------------------


@functools.lru_cache(None)
def _token():
    """The handle of a variable of the host's. TensorFlow orders what takes it, loops, branches and calls that do so within among it."""
    with tf.init_scope(), tf.device("/device:CPU:0"):
        token = tf.raw_ops.VarHandleOp(dtype=tf.int32, shape=[], shared_name="weft_order")
        # of what type it is, so that gradients through a loop or a branch that takes it leave it out
        handle_data_util.set_handle_data(token, handle_data_util.create_handle_data(tf.TensorShape([]), tf.int32))
        tf.raw_ops.AssignVariableOp(resource=token, value=0)
    return token


def _take_token():
    return tf.raw_ops.AssignVariableOp(resource=_token(), value=0)


def _stateful(graph):
    return [op for op in graph.get_operations() if op.op_def.is_stateful and op.type != "Placeholder"]


def _after_what_is_there(graph):
    """An operation that comes after all that a graph does so far, and before what takes the token later."""
    with graph.as_default(), ops.control_dependencies(None), ops.control_dependencies(_stateful(graph)):
        return _take_token()


def operation(run, inputs, types, program=True):
    """A function of arrays as an operation of the graph that is being made, which the host runs, in its place among programs. Returns
    the list of its results. program: it may write variables."""
    before = prepare(program)
    with tf.control_dependencies(before[-1:]):
        outs = tf.numpy_function(run, inputs, types)
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    with tf.control_dependencies([outs[0].op]):
        _take_token()
    return outs


def prepare(program=True):
    """Before an operation of the graph that is being made runs programs; returns, for it and those around it, what that comes after."""
    graphs = host_graphs()
    for graph in graphs:
        graph._weft_calls = True
        graph._weft_programs = programs_in(graph) + program
    return [_after_what_is_there(graph) for graph in graphs]


def fetch_operation(graph, fetch, handle):
    """fetch(handle), run by the host in its place among programs and before what uses the handle later."""
    graph._weft_calls = True
    with graph.as_default(), ops.control_dependencies(None):
        tf.py_function(lambda handle, _: fetch(handle), [handle, _token()], [])


def install():
    """What the host has traced is traced again for a program, without what only the host can do."""
    original = function_context.make_function_context

    def make_function_context(scope_type=None):
        made = original(scope_type)
        if getattr(_here, "owner", None) is None:
            return made
        return made._replace(context=made.context._replace(xla_context_id=("weft", made.context.xla_context_id)))
    function_context.make_function_context = make_function_context
    within = control_flow_util.GraphOrParentsInXlaContext
    # a tf.function that is a program by itself is traced as TensorFlow traces for XLA, too: gradients of branches without optionals
    control_flow_util.GraphOrParentsInXlaContext = lambda graph: owner() is not None or within(graph)
