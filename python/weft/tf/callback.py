"""Calls of Python functions from within a program, where and as often as it gets there: in loops, branches and functions of its own.

In a traced function such a call is TensorFlow's XlaCustomCallV2, whose text names an address; in the program it is the plugin's
`weft_host_callback` (src/pjrt/callback.c).
"""
import ctypes
import re
import traceback

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from weft.tf import trace

_TARGET = "weft_host_callback"
_Function = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_int64))
# as TensorFlow's bridge writes it: it gives an empty tuple, which nobody takes
_CALL = re.compile(r'(?:%\w+ = )?stablehlo\.custom_call @' + _TARGET + r'\(([^()]*)\) \{[^{}]*backend_config = "(\d+)"[^{}]*\} : (\(.*?\)) -> tuple<>')


def _array(address, shape, dtype):
    """A copy of what is there."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(address, size), dtype).reshape(shape)


def takes(tensor):
    """Can a call have such a tensor?"""
    return tensor.dtype.is_numpy_compatible and tensor.dtype not in (tf.string, tf.resource, tf.variant)


def call(function, tensors):
    """An operation, in the graph that is being made, that calls function(*arrays). What it raises fails the program."""
    types, ranks = [np.dtype(t.dtype.as_numpy_dtype) for t in tensors], [t.shape.rank for t in tensors]

    def called(operands, _, error, error_size, dims):
        try:
            ends = np.cumsum(ranks).tolist()
            shapes = [tuple(dims[end - rank:end]) for rank, end in zip(ranks, ends)]
            function(*(_array(operands[i], shape, dtype) for i, (shape, dtype) in enumerate(zip(shapes, types))))
            return 0
        except BaseException:  # nothing may pass the engine
            text = traceback.format_exc().encode()[-(error_size - 1):]
            ctypes.memmove(error, text + b"\0", len(text) + 1)
            return 1
    native = _Function(called)
    for graph in trace.host_graphs():  # a program keeps its graph, and so what it calls
        trace.noted(graph, "_weft_called", list).append(native)
    return gen_xla_ops.xla_custom_call_v2(operands=list(tensors), call_target_name=_TARGET, has_side_effect=True, result_dtypes=[],
                                          result_shapes=[], backend_config=str(ctypes.cast(native, ctypes.c_void_p).value))


def written_out(text):
    """A program's text with the calls as the plugin takes them."""
    return _CALL.sub(rf"stablehlo.custom_call @{_TARGET}(\1) {{has_side_effect = true, api_version = 4 : i32, "
                     r"mhlo.backend_config = {address = \2 : i64}} : \3 -> ()", text)
