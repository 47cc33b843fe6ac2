"""What the host computes ahead of a program: operations that no program can have (strings, tables, Python functions, results whose
shape depends on values) where all that they take is given with the step. What they give goes to the device as its arguments.

A traced function is cut in two: those operations with all that they depend on, as a function of TensorFlow's, and the rest, as the
device's. It cannot be where they take what only devices know: what is computed from variables, or exchanged.
"""
import numpy as np
import tensorflow as tf

from weft.tf import lines, runtime, state, trace

# Operations whose results have shapes that depend on values.
OPEN = frozenset(("DynamicPartition", "ListDiff", "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2", "Where"))


def _spec(t):
    return tf.TensorSpec(t.shape, t.dtype)


def _tensor(name):
    """An input of a node as a tensor's name; of a control input None."""
    return None if name.startswith("^") else name if ":" in name else name + ":0"


def called(node):
    """The functions that a node may call."""
    return [node.op, *(f.name for a in node.attr.values() for f in (a.func, *a.list.func))]


def _functions(nodes, library):
    """{name: definition} of the functions that nodes call, and those call."""
    functions, found, left = {f.signature.name: f for f in library.function}, {}, list(nodes)
    while left:
        for name in called(left.pop()):
            if name in functions and name not in found:
                found[name] = functions[name]
                left += functions[name].node_def
    return found


def _used(nodes, library):
    """The part of a library that nodes call."""
    found = _functions(nodes, library)
    gradients = [g for g in library.gradient if g.function_name in found and g.gradient_func in found]
    return type(library)(function=found.values(), gradient=gradients)


class Split:
    """A traced function in two parts.

    host: takes the function's tensors. device: takes those of them that `kept` says, then the first `ahead` that the host gives; None: there
    is nothing left for it. results: of each result of the function, whether the host gives it, and which of that part's it is.
    Raises NotCompiled, which says why, when it cannot be cut. bad: names of the operations that the device cannot have.
    """

    def __init__(self, graph, bad, owner):
        self.graph, self.inner, self.bad = graph, graph.graph, bad
        definition = self.inner.as_graph_def()
        self._library, self._versions = definition.library, definition.versions
        self._nodes = {node.name: node for node in definition.node}
        captured = [(t.name, outer) for outer, t in self.inner.captures]
        self._captured = dict(captured)
        self._given = [t.name for t in graph.inputs if t.name not in self._captured]
        host = self._what_it_takes(bad)
        self._check(host)
        arguments = {name.partition(":")[0] for name in (*self._given, *self._captured)}
        rest = self._nodes.keys() - host - arguments
        taken = self._taken(rest)
        ahead = [t for t in taken if t.partition(":")[0] in host]
        for t in map(self.inner.get_tensor_by_name, ahead):
            if t.dtype in (tf.variant, tf.resource):
                raise trace.NotCompiled(f"the host cannot compute it ahead of the step: what {t.op.type} makes is no array, and stays where it is made")
        wanted = [t.name for t in graph.outputs]
        of_device = [t for t in wanted if t.partition(":")[0] in rest]
        of_host = list(dict.fromkeys([*ahead, *(t for t in wanted if t not in of_device)]))
        self.results = [(False, of_device.index(t)) if t in of_device else (True, of_host.index(t)) for t in wanted]
        self.kept, self.ahead = [i for i, t in enumerate(self._given) if t in taken], len(ahead)
        self.host = self._made(host, self._given, of_host)
        works = of_device or any(self.inner.get_operation_by_name(n).op_def.is_stateful for n in rest)
        self.device = None
        if works:
            with trace.program(owner):
                self.device = self._made(rest, [self._given[i] for i in self.kept] + ahead, of_device)

    # ---- what belongs where

    def _what_it_takes(self, names):
        """The operations of these names, and all that they depend on but the function's arguments."""
        arguments = {t.partition(":")[0] for t in (*self._given, *self._captured)}
        found, left = set(), list(names)
        while left:
            name = left.pop()
            if name in found or name in arguments:
                continue
            found.add(name)
            left += [t.partition(":")[0] for t in map(_tensor, self._nodes[name].input) if t]
        return found

    def _taken(self, names):
        """The tensors that operations take, each once."""
        return list(dict.fromkeys(t for name in self._nodes if name in names for t in map(_tensor, self._nodes[name].input) if t))

    def _check(self, host):
        """May the host compute these before the step?"""
        nodes = [self._nodes[name] for name in host]
        within = [n for f in _functions(nodes, self._library).values() for n in f.node_def]
        outer = [self._captured.get(_tensor(i)) for n in nodes for i in n.input]
        if any(n.op.startswith("Xla") for n in (*nodes, *within)) or any(
                t is not None and t.dtype == tf.resource and state.variable_of(t) is not None for t in outer):
            raise trace.NotCompiled("the host cannot compute it ahead of the step: it takes what the devices compute from variables or exchange")

    # ---- functions of the parts

    def _made(self, names, inputs, outputs):
        """The operations of these names as a function of `inputs`, which gives `outputs`."""
        part = tf.compat.v1.GraphDef(versions=self._versions)
        for name, node in self._nodes.items():
            if name not in names:
                continue
            node = part.node.add(name=name, op=node.op, device=node.device, attr=node.attr,
                                 input=[i for i in node.input if not i.startswith("^") or i[1:] in names])
            node.attr.pop("_class", None)  # to be beside others that may be elsewhere
        part.library.CopyFrom(_used(part.node, self._library))
        taken = {t for node in part.node for t in map(_tensor, node.input) if t}

        def function(*weft_given):
            known = dict(zip(inputs, weft_given))
            for t, outer in self._captured.items():
                if t in taken or t in outputs:
                    known[t] = tf.compat.v1.get_default_graph().capture(outer)
            made = [t for t in outputs if t not in known]
            got = tf.graph_util.import_graph_def(part, {t: x for t, x in known.items() if t in taken}, made, name="") if part.node else []
            known.update(zip(made, got))
            return [tf.identity(known[t]) if t in inputs else known[t] for t in outputs]
        specs = [_spec(self.inner.get_tensor_by_name(t)) for t in inputs]
        traced = tf.function(function, autograph=False)
        concrete = traced.get_concrete_function(*specs)
        concrete.weft_keeps = traced, self.graph
        return concrete

    # ---- runs

    def say(self):
        names = [f"{self._nodes[n].op} ({n}){lines.place(self.inner, None, n)}" for n in self._nodes if n in self.bad]
        runtime.say(f"{', '.join(names[:3])}{' and others' if names[3:] else ''}: on the host, ahead of the step's program")

    def run(self, rows, device_run):
        """rows: for each replica the arrays of the function's tensors. device_run: runs the device's part of such. Returns the results."""
        given = [self.host(*(tf.constant(x) for x in row)) for row in rows]
        given = [[np.asarray(x) for x in row] for row in given]
        of_device = [[]] * len(rows)
        if self.device is not None:
            of_device = device_run([[*(row[i] for i in self.kept), *more[:self.ahead]] for row, more in zip(rows, given)])
        return [[(more if on_host else own)[k] for on_host, k in self.results] for more, own in zip(given, of_device)]
