"""Where a variable's value is: in TensorFlow's resource, on weft's devices, or both.

A step leaves the variables that it wrote on the devices. TensorFlow's resource is then old, until somebody on the host uses
the variable: everything that reads or writes one goes by its `handle` (checkpoints, SavedModel, assignments), so the getter of
`handle` fetches the value first. Whether it is read or written is not known there: the devices' copies are given up, unless it
is one of the methods that only read. Eager operations that are given a variable as it is read it by its `_handle`. A graph that runs on the host has its variables fetched when it is called, and by an
operation before the use where a program in the same graph may have written them since.
"""
import threading
import weakref

import numpy as np
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import concrete_function
from tensorflow.python.framework import func_graph, ops
from tensorflow.python.ops import resource_variable_ops as rv

from weft.tf import exchange, runtime, trace

SUM, MEAN = tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN
ON_READ = tf.VariableSynchronization.ON_READ

_here = threading.local()  # reading: within a method that only reads; naming: within one that does not even do that


class State:
    """The value of one variable on the devices. Held by its handle."""

    def __init__(self, variable):
        self.handle = weakref.ref(handle_of(variable))
        self.dtype, self.shape, self.name = variable.dtype, None, variable.name
        self.local = variable.synchronization == ON_READ  # each replica has a value of its own
        self.aggregation = variable.aggregation
        self.everywhere = False  # the job's other processes have replicas of it as well
        self.buffers = {}      # device: address; another dict whenever they change
        self.host_is_old = False

    # ---- to the devices

    def on(self, devices, everywhere=False):
        """The buffers on devices, put there if need be; a program's replicas are in their order. everywhere: and as many in each of the
        job's other processes."""
        here = self.buffers.keys()
        if (here != set(devices) or self.everywhere != everywhere) if self.local else not here >= set(devices):
            self.fetch()
            if self.local:
                self.drop()
            value, client = _read(self.handle(), self.dtype), runtime.client()
            self.shape, self.everywhere = value.shape, everywhere
            first, n = (client.first, len(client.all_ids)) if everywhere else (0, len(devices))
            for i, device in enumerate(devices):
                if device not in self.buffers:
                    self.buffers[device] = client.put(self._share(value, first + i, n), device)
        return [self.buffers[d] for d in devices]

    def _share(self, value, index, n):
        """A replica's part of what the host has: sums are divided, as tf.distribute does it."""
        if not self.local or self.aggregation != SUM or n == 1:
            return value
        if np.issubdtype(value.dtype, np.integer):
            share = value // n + (index < value % n)
        else:
            share = value / n
        return np.asarray(share, value.dtype)

    def written(self, buffers, shape):
        """A program has left new values: device: address. It gives the old ones of its devices back."""
        if len(self.buffers) > len(buffers):
            runtime.client().free(b for d, b in self.buffers.items() if d not in buffers)
        self.buffers, self.shape, self.host_is_old = buffers, shape, True

    # ---- to the host

    def fetch(self):
        """Brings TensorFlow's resource up to date."""
        with runtime.LOCK:
            if not self.host_is_old:
                return
            handle, client, dtype = self.handle(), runtime.client(), self.dtype.as_numpy_dtype
            if self.local and self.aggregation in (SUM, MEAN):
                parts = [client.read(b, self.shape, dtype) for _, b in sorted(self.buffers.items())]
                value = np.sum(parts, 0, dtype=parts[0].dtype)
                if self.everywhere:
                    value = exchange.reduce(value, False, f"value_of_{self.name}")
                if self.aggregation == MEAN:
                    replicas = len(parts) * (runtime.processes() if self.everywhere else 1)
                    value = np.asarray(value / replicas, value.dtype)
            else:
                value = client.read(self.buffers[min(self.buffers)], self.shape, dtype)
            with tf.init_scope():
                rv.gen_resource_variable_ops.assign_variable_op(handle, tf.constant(value, self.dtype))
            self.host_is_old = False

    def drop(self):
        """Gives the devices' copies up."""
        with runtime.LOCK:
            if self.buffers and runtime.opened():
                runtime.client().free(self.buffers.values())
            self.buffers = {}

    def used_by_host(self, reading):
        with runtime.LOCK:
            if self.buffers:
                self.fetch()
                if not reading:
                    self.drop()

    def __del__(self):
        try:
            self.drop()
        except (AttributeError, TypeError):  # the interpreter is ending
            pass


def _read(handle, dtype):
    with tf.init_scope():
        return np.asarray(rv.gen_resource_variable_ops.read_variable_op(handle, dtype).numpy(), order="C")


def handle_of(variable):
    """TensorFlow's handle of a variable, which is not used by that."""
    return variable.__dict__["_handle"]


def variable_of(handle):
    """The variable that a handle is of, as who took it last knows it; None: nobody has taken it from a variable that lives."""
    variable = getattr(handle, "_weft_variable", None)
    return variable and variable()


def of(variable):
    """The State of a variable; made when there is none."""
    handle = handle_of(variable)
    state = getattr(handle, "_weft", None)
    if state is None:
        state = handle._weft = State(variable)
    return state


# ---- the host's uses ---------------------------------------------------------------------------------------------------------


def _host_uses(handle):
    """Somebody on the host is about to use the variable."""
    reading = getattr(_here, "reading", False)
    if tf.executing_eagerly():
        if (state := getattr(handle, "_weft", None)) is not None:
            state.used_by_host(reading)
    elif trace.on_host() and isinstance(handle, ops.EagerTensor) and trace.programs_may_run():
        for graph in trace.host_graphs():
            _fetch_in_graph(graph, handle, reading)


def _fetch_in_graph(graph, handle, reading):
    """In a graph that the host will run: an operation that fetches before the use. It takes the handle: that orders it before what
    uses the handle later. Once between two programs."""
    done = trace.noted(graph, "_weft_fetched", dict)
    if done.get((id(handle), reading)) == trace.programs_in(graph):
        return
    done[id(handle), reading] = trace.programs_in(graph)

    def fetch(_):  # the handle as it is captured here: the one that the operation gives has no State
        if (state := getattr(handle, "_weft", None)) is not None:
            state.used_by_host(reading)
    trace.fetch_operation(graph, fetch, handle)


def _handle(self):
    handle = handle_of(self)
    if handle is not None:
        if isinstance(handle, ops.EagerTensor) and variable_of(handle) is None:
            handle._weft_variable = weakref.ref(self)
        if not getattr(_here, "naming", False):
            _host_uses(handle)
    return handle


def _handle_to_read(self):
    """What eager operations take of a variable among their arguments."""
    try:
        handle = handle_of(self)
    except KeyError:
        raise AttributeError("_handle") from None
    if tf.executing_eagerly() and (state := getattr(handle, "_weft", None)) is not None:
        state.used_by_host(reading=True)
    return handle


def _set_handle(self, handle):
    self.__dict__["_handle"] = handle


def _reading(method):
    """A method of a variable that only reads."""
    def wrapped(self, *args, **kwargs):
        before = getattr(_here, "reading", False)
        _here.reading = True
        try:
            return method(self, *args, **kwargs)
        finally:
            _here.reading = before
    wrapped.__name__, wrapped.__doc__, wrapped.weft = method.__name__, method.__doc__, True
    return wrapped


def _naming(method):
    """A method that takes handles only to know variables by them."""
    def wrapped(*args, **kwargs):
        before = getattr(_here, "naming", False)
        _here.naming = True
        try:
            return method(*args, **kwargs)
        finally:
            _here.naming = before
    wrapped.__name__, wrapped.__doc__ = method.__name__, method.__doc__
    return wrapped


def _call_flat(original):
    def call_flat(self, tensor_inputs, captured_inputs):
        if tf.executing_eagerly():
            for handle in captured_inputs:
                if (state := getattr(handle, "_weft", None)) is not None:
                    state.used_by_host(reading=False)
        elif trace.on_host() and trace.programs_in(self.graph):
            trace.prepare()
        return original(self, tensor_inputs, captured_inputs)
    return call_flat


def install():
    """Teaches TensorFlow's variables that their values may be on weft's devices."""
    base = rv.BaseResourceVariable
    base.handle = property(_handle, doc=base.handle.__doc__)
    base._handle = property(_handle_to_read, _set_handle)
    for name in ("_read_variable_op", "sparse_read", "gather_nd", "is_initialized"):
        setattr(base, name, _reading(getattr(base, name)))
    for name in ("device", "op", "graph"):  # of the handle, not of the value
        setattr(base, name, property(lambda self, name=name: getattr(handle_of(self), name)))
    func_graph.FuncGraph.watch_variable = _naming(func_graph.FuncGraph.watch_variable)
    concrete_function.ConcreteFunction._call_flat = _call_flat(concrete_function.ConcreteFunction._call_flat)
