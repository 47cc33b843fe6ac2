"""tf.function outside of strategies: a function of tensors that uses variables is a program of one device.

What cannot be compiled (iterators, strings, results whose shape depends on values) is computed on the host ahead of it where that can
be, as in a strategy's step; else the function runs on the host as TensorFlow does it. A sentence on stderr says so once.
"""
import operator

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.eager.polymorphic_function import function_type_utils, polymorphic_function
from tensorflow.python.framework import ops

from weft.tf import pjrt, runtime, trace
from weft.tf.program import Program, checked

_PLAIN = (int, float, complex, str, bytes, bool, type(None))


def _on_one_device():
    """Where such functions run: no strategy that has several replicas is in scope."""
    return tf.distribute.get_strategy().num_replicas_in_sync == 1


def _takes_tensors(args, kwargs):
    """Are the arguments such that a program can take them? Iterators, variables, ragged and distributed values are not."""
    for x in tf.nest.flatten((args, kwargs)):
        if isinstance(x, (tf.Tensor, np.ndarray, np.generic)):
            if tf.as_dtype(x.dtype) != tf.string and np.dtype(tf.as_dtype(x.dtype).as_numpy_dtype) not in pjrt.TYPES:
                return False
        elif not isinstance(x, _PLAIN):
            return False
    return True


def _program(function, graph):
    """A traced function's program; None when it is the host's."""
    known = function.__dict__.setdefault("_weft_programs", {})
    if id(graph) not in known:
        worth = function._jit_compile or any(t.dtype == tf.resource for t in graph.captured_inputs)
        known[id(graph)] = (checked(Program(graph, (0,), owner=tf.distribute.get_strategy())) if worth else None, graph)
    return known[id(graph)][0]


def _bind(graph, args, kwargs):
    bound = function_type_utils.canonicalize_function_inputs(args, kwargs, graph.function_type)
    return graph.function_type.unpack_inputs(bound)


def _key(args, kwargs):
    """What makes calls with tensors alone alike; None for other calls. TensorFlow's own way of finding a trace takes longer than a small
    program."""
    if kwargs:
        return None
    key = [tf.distribute.get_strategy()]  # itself: another could get the number of one that is gone
    for x in args:
        if not isinstance(x, (ops.EagerTensor, np.ndarray)):
            return None
        key += x.dtype, tuple(x.shape)
    return tuple(key)


def _found(function, args, kwargs):
    """The trace for a call, its program (None: the host's) and the program's tensors."""
    calls, key = function.__dict__.setdefault("_weft_calls", {}), _key(args, kwargs)
    if key in calls:
        return *calls[key], args
    with trace.program(tf.distribute.get_strategy()):
        graph = function.get_concrete_function(*args, **kwargs)
    program = _program(function, graph)
    inputs = _bind(graph, args, kwargs) if program else ()
    if key and len(inputs) == len(args) and all(map(operator.is_, inputs, args)):
        calls[key] = graph, program
    return graph, program, inputs


def _run(function, args, kwargs):
    """The function's results from a device, and True; or None, False."""
    try:
        graph, program, inputs = _found(function, args, kwargs)
        if program is None:
            return None, False
        rows = program.run([[np.asarray(t) for t in inputs]])
    except trace.HostOnly:
        function.__dict__["_weft_host"] = True
        return None, False
    except trace.NotCompiled as e:
        function.__dict__["_weft_host"] = True
        runtime.on_host(e)
        return None, False
    flat = [tf.constant(x, t) for x, t in zip(rows[0], program.output_types)]
    return graph.function_type.pack_output(flat), True


def _wanted(function, args, kwargs):
    return (tf.executing_eagerly() and not function._run_functions_eagerly and not function.__dict__.get("_weft_host")
            and not record.could_possibly_record() and _on_one_device() and _takes_tensors(args, kwargs))


def _plain(function):
    """The same function, which XLA does not compile: for graphs of the host that have programs in them."""
    if "_weft_plain" not in function.__dict__:
        clone = function._clone(None)
        clone._jit_compile = None
        function.__dict__["_weft_plain"] = clone
    return function.__dict__["_weft_plain"]


def install():
    cls = polymorphic_function.Function
    original = cls.__call__

    def call(self, *args, **kwargs):
        if _wanted(self, args, kwargs):
            result, done = _run(self, args, kwargs)
            if done:
                return result
        if self._jit_compile and trace.owner() is None and not self._run_functions_eagerly:
            return original(_plain(self), *args, **kwargs)
        return original(self, *args, **kwargs)
    call.__doc__ = original.__doc__
    cls.__call__ = call
    concrete, listed = cls.get_concrete_function, cls._list_all_concrete_functions_for_serialization

    def get_concrete_function(self, *args, **kwargs):
        with trace.exporting():
            return concrete(self, *args, **kwargs)
    cls.get_concrete_function = get_concrete_function
    cls._list_all_concrete_functions_for_serialization = lambda self: [f for f in listed(self) if not trace.of_this_process(f.graph)]
