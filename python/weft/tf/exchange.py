"""What the processes of a job hand each other beside their programs: an array of each, to all.

Every process calls these in the same order. An array goes as its bytes, through a small program over the first device of each
process: who is gone, or comes to something else, is named as in any program. With WEFT_PHANTOM nothing is sent, as with programs:
what a process has stands for the others'.
"""
import functools
import os
import re

import numpy as np

from weft.tf import runtime

_TEXT = """module @{name} attributes {{mhlo.num_replicas = {n} : i32, mhlo.num_partitions = 1 : i32}} {{
  func.func @main(%mine: tensor<1x{size}xui8>) -> tensor<{rows}x{size}xui8> {{
    %all = "stablehlo.{operation}"(%mine) <{{{with_}replica_groups = dense<[{members}]> : tensor<1x{n}xi64>}}>
        : (tensor<1x{size}xui8>) -> tensor<{rows}x{size}xui8>
    return %all : tensor<{rows}x{size}xui8>
  }}
}}
"""


def _phantom():
    return os.environ.get("WEFT_PHANTOM", "0") not in ("", "0") and runtime.device_type() != "CPU"


@functools.lru_cache(None)
def _program(client, operation, name, rows, size):
    n = client.job.processes
    with_ = "all_gather_dim = 0 : i64, " if operation == "all_gather" else ""
    text = _TEXT.format(name=re.sub(r"\W+", "_", name), n=n, size=size, rows=rows, operation=operation, with_=with_, members=list(range(n)))
    return client.compile(text, (0,), client.first_of_each())


def _run(operation, name, rows, array):
    client = runtime.client()
    data = np.frombuffer(array.tobytes(), np.uint8)
    program = _program(client, operation, name, rows, data.size)
    given, got = [client.put(data.reshape(1, -1), 0)], []
    try:
        got = program.run(np.array([given], np.uint64))[0].tolist()
        return client.read(got[0], (rows, data.size), np.uint8)
    finally:
        client.free(given + got)


def _sendable(array):
    array = np.asarray(array, order="C")
    if array.dtype.hasobject:
        raise TypeError("weft: strings cannot be exchanged between processes")
    return array


def all_gather(array, name="all_gather"):
    """[process, ...]: every process's array, which are alike in shape and type. name: what it is for, in errors."""
    array, n = _sendable(array), runtime.processes()
    if n == 1 or _phantom() or not array.size:
        return np.stack([array] * n)
    with runtime.LOCK:
        rows = _run("all_gather", name, n, array)
    return np.frombuffer(rows.tobytes(), array.dtype).reshape(n, *array.shape)


def reduce(array, mean, name="reduce"):
    """Sum or mean of every process's array, in their order."""
    rows = all_gather(array, name)
    total = np.sum(rows, 0, dtype=rows.dtype)
    return np.asarray(total / len(rows), rows.dtype) if mean else total


def of_first(array, name="initial_value"):
    """The first process's array."""
    array = _sendable(array)
    if runtime.processes() == 1 or _phantom() or not array.size:
        return array
    with runtime.LOCK:
        row = _run("collective_broadcast", name, 1, array)
    return np.frombuffer(row.tobytes(), array.dtype).reshape(array.shape)


def concat(array, axis, name="gather"):
    """Every process's array, one after the other along an axis, of which each may have another length."""
    array = _sendable(array)
    axis %= max(1, array.ndim)
    lengths = all_gather(np.int64(array.shape[axis]), name + "_lengths")
    room = np.zeros((*array.shape[:axis], lengths.max(), *array.shape[axis + 1:]), array.dtype)
    part = lambda length: (slice(None),) * axis + (slice(0, length),)  # noqa: E731
    room[part(array.shape[axis])] = array
    rows = all_gather(room, name)
    return np.concatenate([row[part(length)] for row, length in zip(rows, lengths)], axis)
