"""Lines of the user's program for operations of a traced function, in the StableHLO that TensorFlow's bridge makes of it.

The bridge names an operation by its place in the graph, and gives as its line the one of TensorFlow that made it. The graph knows who
called that: the innermost caller who is in no installed library is the user's line. Gradients get the line of what they are of.
"""
import json
import pathlib
import re

_NAMED = re.compile(r'^(#loc\d+ = loc\()("(?:[^"\\]|\\.)*")\)$', re.M)
_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3")
_HERE = str(pathlib.Path(__file__).resolve().parent.parent)  # weft's own calls are not the user's, installed or not
_GRADIENT = "gradient_tape/"


def is_users(file):
    """Is it the user's program, and no library?"""
    return not file.startswith((_HERE, "<")) and not any(folder in file for folder in _LIBRARIES)


def _line(operation):
    """(file, line) of the user's innermost frame; None: it is nowhere in the user's program."""
    frames = reversed(list(operation.traceback or ()))
    return next(((frame.filename, frame.lineno) for frame in frames if is_users(frame.filename)), None)


def _made_by(name):
    """Names of operations whose line is that of `name`, the best first: the forward one of a gradient, itself, the call that it is part of."""
    if name.startswith(_GRADIENT):
        forward = name.removeprefix(_GRADIENT)
        yield from (forward, forward.removesuffix("Grad"), forward.rpartition("/")[0])
    while name:
        yield name
        name = name.rpartition("/")[0]


def _found(operations, name):
    return next((at for at in (_line(operations[n]) for n in _made_by(name) if n in operations) if at), None)


def place(graph, function, name):
    """" at FILE:LINE" of an operation, for errors; "" when it is not known. graph: the traced function's. function: the name of the one
    within it that has the operation; None: itself."""
    inner = graph._functions.get(function) if function else None
    graph = getattr(inner, "graph", graph)
    at = _found({op.name: op for op in graph.get_operations()}, name)
    return " at {}:{}".format(*at) if at else ""


_OPEN = re.compile(r"^.*tensor<[^>]*\?.* loc\(#(loc\d+)\)$", re.M)


def open_shape(text, graph):
    """Where a program's text has the first shape that depends on values: " (NAME) at FILE:LINE"; None: it has none."""
    m = _OPEN.search(text)
    if m is None:
        return "" if "tensor<?" in text else None
    at = m.group(1)
    while (inner := re.search(rf"^#{at} = loc\((?:fused\[|callsite\()#(loc\d+)", text, re.M)):
        at = inner.group(1)
    named = re.search(rf'^#{at} = loc\(("(?:[^"\\]|\\.)*")\)$', text, re.M)
    if named is None:
        return ""
    name = json.loads(named.group(1))
    found = _found({op.name: op for op in graph.get_operations()}, name)
    return f" ({name})" + (" at {}:{}".format(*found) if found else "")


def with_lines(text, graph):
    """The program's text where operations have the user's lines. graph: the function's."""
    operations = {op.name: op for op in graph.get_operations()}

    def named(m):
        at = _found(operations, json.loads(m.group(2)))
        return f"{m.group(1)}{m.group(2)}({json.dumps(at[0])}:{at[1]}:0))" if at else m.group(0)
    return _NAMED.sub(named, text)
