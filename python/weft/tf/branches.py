"""Branches in which replicas exchange something: all take the one that the first replica's condition says.

In TensorFlow such a branch stands outside of replicas (merge_call), where there is one condition for all: Keras's LossScaleOptimizer
applies gradients, which sums them over replicas, where those of the first replica are finite. Here all replicas are one program,
the condition of each is its own, and where they differ some would wait for ever for the others.
"""
import functools

import tensorflow as tf
from tensorflow.python.ops import cond_v2

from weft.tf import strategy, trace


def _functions(op):
    for value in op.node_def.attr.values():
        for f in (value.func, *value.list.func):
            if f.name:
                yield f.name


def _exchanges(graph, seen):
    """Does an operation of the graph, or of a function that it calls, take part in an exchange?"""
    for op in graph.get_operations():
        if op.type == "XlaAllReduce":
            return True
        for name in _functions(op):
            function = graph._get_function(name)
            if function is not None and name not in seen:
                seen.add(name)
                if _exchanges(function.graph, seen):
                    return True
    return False


def _of_first(x, n):
    """The first replica's number or truth value."""
    number = tf.cast(x, tf.int32)
    total = strategy.all_reduce(tf.where(strategy.replica_id(n) == 0, number, tf.zeros_like(number)), n)
    return tf.cast(total, x.dtype)


def _agreed(build, graphs_of):
    """`build` of a conditional, whose first argument says which of the graphs runs."""
    @functools.wraps(build)
    def built(which, *args, **kwargs):
        owner = trace.owner()
        n = owner.num_replicas_in_sync if owner is not None else 1
        if n > 1 and any(_exchanges(graph, set()) for graph in graphs_of(*args)):
            which = _of_first(tf.convert_to_tensor(which), n)
        return build(which, *args, **kwargs)
    return built


def install():
    cond_v2._build_cond = _agreed(cond_v2._build_cond, lambda true, false, *_: (true, false))
    cond_v2._build_case = _agreed(cond_v2._build_case, lambda graphs, *_: graphs)
