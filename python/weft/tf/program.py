"""A function as a program of weft's: traced once, lowered to StableHLO by TensorFlow's own bridge, run for all replicas.

The lowered program takes the function's tensors, then what it captured: variables and constants. It gives the function's results,
then the new values of the variables that it wrote (`mhlo.input_output_alias` says which), which stay on the devices.
"""
import functools
import json
import re

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import kernels, ops

from weft.tf import ahead, callback, lines, pjrt, room, runtime, state, trace

_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
_ALIAS = re.compile(r"parameter_number = (\d+) : i64\}, output_index = array<i64(?:: (\d+))?>")  # no index: it is the only result
_ARGUMENT = re.compile(r'(%arg(\d+): tensor<(?:[^<>]|<[^<>]*>)*>)(?: loc\([^()]*\))?')
_FRAMEWORK = re.compile(r'"[^"]*/tensorflow/python/framework/ops.py":\d+:\d+')  # where the bridge says everything is from
_OF_GRAPHS = ("Placeholder", "PlaceholderWithDefault", "NoOp", "_Arg", "_Retval")
_MODULE = re.compile(r"module @[\w.\-$]+")
_NAME = re.compile(r"^_*inference_(.*?)_\d+$")
_TENSOR = r"(tensor<(?:[^<>]|<[^<>]*>)*>)"
_ERF = re.compile(r"mhlo\.erf (%[\w#]+)(?: \{[^}]*\})? : " + _TENSOR)  # StableHLO has none
_COPY = re.compile(r"mhlo\.copy (%[\w#]+)(?: \{[^}]*\})? : " + _TENSOR)


_LOST = {"UNAVAILABLE": tf.errors.UnavailableError, "ABORTED": tf.errors.AbortedError,
         "DEADLINE_EXCEEDED": tf.errors.DeadlineExceededError}  # of other processes


class ResourceExhaustedError(tf.errors.ResourceExhaustedError, MemoryError):
    """A device's memory does not suffice: TensorFlow's error, and the one that it knows when a graph's operation raises it."""

    def __init__(self, said):
        super().__init__(None, None, said)


def _of_tensorflow(e, program):
    """The error that TensorFlow's users know, of a program's run."""
    if isinstance(e, pjrt.OutOfMemory):
        return ResourceExhaustedError(str(e))
    if e.code in _LOST:
        return _LOST[e.code](None, None, str(e))
    for compiled in program._compiled.values():  # some that have such shapes can be compiled
        if (where := lines.open_shape(compiled.lowered, program.source.graph)) is not None:
            return trace.NotCompiled(f"weft: no program can be made of {program.graph.name.decode()}: the shape of a value{where} depends "
                                     "on values; a mask (tf.where) instead of a selection keeps it")
    return e


class Program:
    """A function of tensors, for replicas on `devices` (positions).

    graph: the function, traced within trace.program. Open dimensions are compiled for each size that comes.
    everywhere: with as many replicas in each of the job's other processes, which run the same; `devices` are all of this one.
    owner: the strategy that has the host compute ahead what devices cannot; None: none does.
    """

    def __init__(self, graph, devices, everywhere=False, owner=None):
        self.graph, self.devices, self.everywhere = graph, tuple(devices), everywhere
        self.source, self.owner, self.split = graph, owner, None  # source: where operations are looked up for their lines
        self.name = re.sub(r"\W+", "_", _NAME.sub(r"\1", graph.name.decode())).strip("_") or "function"
        self.output_types = [t.dtype for t in graph.outputs]
        self.output_shapes = [t.shape for t in graph.outputs]
        # what the function uses of a graph around it: given with its tensors, after them
        self.outer = [t for t in graph.captured_inputs if not isinstance(t, ops.EagerTensor)]
        self._jobs, self._compiled = {}, {}
        self.has_room, self._rooms = False, {}  # see room; {shapes: the room's length}

    @classmethod
    def of(cls, function, name, specs, devices, owner):
        """Traces a function of tensors that are like specs (tf.TensorSpec); it returns a list of tensors. name: for reports.
        owner: the strategy; devices: its own here."""
        open_ = owner.num_replicas_in_sync > 1 and owner.extended.keeps_sparse and not all(s.shape.is_fully_defined() for s in specs)

        def replica(*tensors):
            with trace.compiled():
                if not open_:
                    return function(*tensors)
                with room.within(tensors[-1]) as lengths:
                    return [*function(*tensors[:-1]), room.longest(lengths)]
        replica.__name__ = re.sub(r"\W", "_", name)
        traced = tf.function(replica, autograph=False)
        with trace.program(owner):
            graph = traced.get_concrete_function(*specs, *[room.SPEC] * open_)
        program = checked(cls(graph, devices, owner.num_replicas_in_sync > len(devices), owner))
        if open_:
            program.has_room = True
            program.output_types, program.output_shapes = program.output_types[:-1], program.output_shapes[:-1]
        program.function = traced  # keeps what the graph needs alive
        return program

    def divide(self, bad, why):
        """Leaves operations, by their names, to the host. Raises `why`, a NotCompiled, where there are none, or the host cannot have them."""
        before = self.split.bad if self.split else set()
        if self.owner is None or self.outer or before.issuperset(bad):
            raise why
        try:
            self.split = ahead.Split(self.source, before.union(bad), self.owner)
        except trace.NotCompiled as e:
            raise trace.NotCompiled(f"{why}; {e}", why.node) from None
        self.split.say()
        if (device := self.split.device) is not None:
            check(device)
            self.graph = device
        self._jobs, self._compiled = {}, {}

    def run(self, inputs):
        """inputs: for each replica the list of its arrays, then those of `outer`. Returns for each replica the list of its results as arrays."""
        inputs = [[np.asarray(x, order="C") for x in row] for row in inputs]
        if not self.has_room:
            return self._run_divided(inputs)
        shapes = tuple(tuple(x.shape for x in row) for row in inputs)
        n = len(inputs[0]) - len(self.outer)
        with_room = lambda length: [[*row[:n], room.of(length), *row[n:]] for row in inputs]  # noqa: E731
        if shapes not in self._rooms:
            self._rooms[shapes] = self._room(with_room(1))  # 1: the bridge makes no branches over no rows at all
        return [row[:-1] for row in self._run_divided(with_room(self._rooms[shapes]))]

    def _room(self, inputs):
        """How long the longest rows of replicas are that exchange some, where their shapes differ."""
        shapes = [tuple(x.shape for x in row) for row in inputs]
        if self.split or len(set(shapes)) == 1:
            return 0
        try:
            with runtime.LOCK:
                compiled = [self._compile(shape, row) for shape, row in zip(shapes, inputs)]
        except trace.NotCompiled:  # it will be divided
            return 0
        return max(c.result_shapes[len(self.output_types)][0] for c in compiled)

    def _run_divided(self, inputs):
        """Runs what is the host's, and then what is the devices'."""
        while True:
            try:
                return self.split.run(inputs, self._run) if self.split else self._run(inputs)
            except trace.NotCompiled as e:  # what the bridge stops at may be the host's; it stops once for each
                stopped = {e.node} & {op.name for op in self.source.graph.get_operations()}
                self.divide(stopped.union(_having(self.source, ahead.OPEN.__contains__)), e)

    def _run(self, inputs):
        """Runs what is the devices'."""
        shapes = tuple(tuple(x.shape for x in row) for row in inputs)
        with runtime.LOCK:
            try:
                job = self._jobs.get(shapes)
                if job is None:
                    compiled = [self._compile(shape, row) for shape, row in zip(shapes, inputs)]
                    job = self._jobs[shapes] = _Job(self.devices, compiled, self.everywhere)
                return job.run(inputs)
            except pjrt.Error as e:
                raise _of_tensorflow(e, self) from None

    def _compile(self, shapes, arrays):
        """The program for arguments of these shapes."""
        if shapes not in self._compiled:
            self._compiled[shapes] = _Compiled(self, arrays)
        return self._compiled[shapes]


@functools.lru_cache(None)
def _compiles(operation):
    """Does TensorFlow's bridge know an operation?"""
    return any(k.device_type == "XLA_CPU_JIT" for k in kernels.get_registered_kernels_for_op(operation).kernel)


def _having(graph, is_bad):
    """Names of a traced function's operations that are bad, or whose functions have such."""
    definition = graph.graph.as_graph_def()
    functions = {f.signature.name: f.node_def for f in definition.library.function}

    @functools.lru_cache(None)
    def has(function):
        return any(bad(node) for node in functions[function])

    def bad(node):
        own = node.op not in functions and node.op not in _OF_GRAPHS and is_bad(node.op)
        return own or any(has(f) for f in ahead.called(node) if f in functions)
    return [node.name for node in definition.node if bad(node)]


def _with_strings(graph):
    """Names of a traced function's operations that take or give strings, as no device does."""
    return [op.name for op in graph.graph.get_operations() if op.type not in _OF_GRAPHS and
            any(t.dtype == tf.string for t in (*op.inputs, *op.outputs))]


def checked(program):
    """The program; what it cannot have is the host's from now on. Raises NotCompiled where the host cannot have it ahead of the program."""
    graph = program.graph
    try:
        check(graph)
    except trace.NotCompiled as e:
        program.divide({*_having(graph, lambda op: not _compiles(op)), *_with_strings(graph)}, e)
    return program


@functools.lru_cache(None)
def _load_bridge():
    """Its kernels are registered with the first program."""
    nothing = tf.function(lambda: tf.constant(0), autograph=False).get_concrete_function()
    _lower(nothing, [], [])


def check(graph):
    """Raises NotCompiled when a traced function has operations that no program can have, and names one."""
    _load_bridge()
    definition = graph.graph.as_graph_def()
    functions = {f.signature.name: f.node_def for f in definition.library.function}
    for function, nodes in {None: definition.node, **functions}.items():
        for node in nodes:
            if node.op not in functions and node.op not in _OF_GRAPHS and not _compiles(node.op):
                raise trace.NotCompiled(f"weft: no program can be made of {graph.name.decode()}: it has the operation {node.op} "
                                        f"({node.name}){lines.place(graph.graph, function, node.name)}")


def _lower(graph, specs, captured):
    """StableHLO as text. captured: eager tensors."""
    ctx = context.context()
    try:
        text = ctx.get_compiler_ir(device_name=_CPU, platform_name=None, function_name=graph.name, flat_args=specs,
                                   captured_inputs=captured, stage="stablehlo")
    except (ValueError, tf.errors.OpError) as e:
        why = str(e).replace("Failed getting HLO text: ", "").split("{{function_node")[0].strip("' \n")
        node = re.search(r"node `([^`]+)`", why) or re.search(r"\{\{node ([^{}]+)\}\}", why)
        at = lines.place(graph.graph, None, node.group(1)) if node else ""
        if "the replica-id opcode" in why:
            why = "a size in it depends on the replica's number, and is not known before it runs"
        raise trace.NotCompiled(f"weft: no program can be made of {graph.name.decode()}{at}: {why}", node and node.group(1)) from None
    return text.decode()


def _written(text):
    """{result: argument} of the variables that the program writes."""
    head = text[:text.index("func.func")]
    return {int(result or 0): int(argument) for argument, result in _ALIAS.findall(head)}


def _describe(text, written, names):
    """Says with the arguments what they are called, for reports, and which of them the program may overwrite."""
    to = {argument: result for result, argument in written.items()}
    start = text.index("@main(")
    end = text.find("->", start, text.index("\n", start))
    end = text.index("\n", start) if end < 0 else end

    def argument(m):
        i = int(m.group(2))
        donated = f" {{tf.aliasing_output = {to[i]} : i32}}" if i in to else ""
        return f"{m.group(1)}{donated} loc({json.dumps(names[i])})"
    return text[:start] + _ARGUMENT.sub(argument, text[start:end]) + _FRAMEWORK.sub("unknown", text[end:])


class _Compiled:
    """A program for arguments of certain shapes."""

    def __init__(self, program, arrays):
        graph = program.graph
        n = len(arrays) - len(program.outer)
        specs = [tf.TensorSpec(x.shape, t.dtype) for x, t in zip(arrays[:n], graph.inputs)]
        outer = iter(arrays[n:])
        self.inputs = list(range(n))  # the arguments that are given with each run
        self.states, self.constants, captured = [], [], []  # (argument, State), (argument, array)
        names = [t.name.removesuffix(":0") for t in graph.inputs]
        for i, tensor in enumerate(graph.captured_inputs, n):
            if not isinstance(tensor, ops.EagerTensor):
                self.inputs.append(i)
                tensor = tf.constant(next(outer))
            elif tensor.dtype == tf.resource:
                variable = state.variable_of(tensor)
                if variable is None:
                    raise trace.NotCompiled(f"weft: no program can be made of {graph.name.decode()}: it uses {names[i]}, which is of no "
                                            "tf.Variable that is still there")
                names[i] = variable.name.removesuffix(":0")
                self.states.append((i, state.of(variable)))
            else:
                self.constants.append((i, np.asarray(tensor.numpy(), order="C")))
            captured.append(tensor)
        text = _lower(graph, specs, captured)
        self.lowered, self.source = text, program.source
        text = _ERF.sub(r"chlo.erf \1 : \2 -> \2", text)
        text = callback.written_out(_COPY.sub(r"stablehlo.reshape \1 : (\2) -> \2", text))
        text = lines.with_lines(_MODULE.sub(f"module @{program.name}", text, count=1), program.source.graph)
        written = _written(text)
        client = runtime.client()
        ids = client.all_ids if program.everywhere else None
        self.text = _describe(text, written, names)
        self.executable = client.compile(self.text, program.devices, ids)
        self.result_types = [t.dtype.as_numpy_dtype for t in graph.outputs]
        self.result_shapes = self.executable.output_shapes()
        states = dict(self.states)
        self.written = [(argument, result, states[argument]) for result, argument in sorted(written.items())]


class _Job:
    """The programs of all replicas, and the addresses of their arguments: those of captured values stay from run to run."""

    def __init__(self, devices, compiled, everywhere):
        self.devices, self.compiled, self.everywhere = devices, compiled, everywhere
        self.same = all(c is compiled[0] for c in compiled)  # replicas of unequal shapes have programs of their own
        first = compiled[0]
        self.states, self.written, self.n_results = first.states, first.written, len(first.result_types)
        self.table = None  # [replica, argument]
        self.seen = [None] * len(self.states)  # the State's buffers that are in the table
        # which may prove impossible to run, when it has the variables' memory already: then they begin from the host's again
        self.unsure = any(lines.open_shape(c.lowered, c.source.graph) is not None for c in compiled)
        self.columns = [a for a, _, _ in self.written]
        self.new_columns = [r for _, r, _ in self.written]

    def run(self, inputs):
        if not self.unsure:
            return self._run(inputs)
        for _, s in self.states:
            s.fetch()
        try:
            out = self._run(inputs)
        except pjrt.Error:
            for _, s in self.states:
                s.drop()
            raise
        self.unsure = False
        return out

    def _run(self, inputs):
        client, devices = runtime.client(), self.devices
        if self.table is None:
            self._make_table()
        for i, (column, s) in enumerate(self.states):
            if s.buffers is not self.seen[i]:
                self.table[:, column] = s.on(devices, self.everywhere)
                self.seen[i] = s.buffers
        given = []
        try:
            for r, d in enumerate(devices):
                for column, x in zip(self.compiled[r].inputs, inputs[r]):
                    given.append(client.put(x, d))
                    self.table[r, column] = given[-1]
            outs = self._execute()
        finally:
            client.free(given)
        self._keep(outs)
        rows = outs[:, :self.n_results].tolist()
        try:
            return [[client.read(b, shape, dtype) for b, shape, dtype in zip(row, c.result_shapes, c.result_types)]
                    for row, c in zip(rows, self.compiled)]
        finally:
            for row in rows:
                client.free(row)

    def _make_table(self):
        client, first = runtime.client(), self.compiled[0]
        self.table = np.zeros((len(self.devices), len(first.inputs) + len(first.states) + len(first.constants)), np.uint64)
        for column, array in first.constants:
            self.table[:, column] = [client.put(array, d) for d in self.devices]

    def _execute(self):
        if self.same:
            return self.compiled[0].executable.run(self.table)
        return np.concatenate([c.executable.run_one(self.table[r:r + 1], d)
                               for r, (c, d) in enumerate(zip(self.compiled, self.devices))])

    def _keep(self, outs):
        """Makes what was written the variables' values."""
        if not self.written:
            return
        old = self.table[:, self.columns].ravel().tolist()
        new = outs[:, self.new_columns]
        self.table[:, self.columns] = new
        shapes = self.compiled[0].result_shapes
        index = {column: i for i, (column, _) in enumerate(self.states)}
        for (column, result, s), buffers in zip(self.written, new.T.tolist()):
            s.written(dict(zip(self.devices, buffers)), shapes[result])
            self.seen[index[column]] = s.buffers
        runtime.client().free(old)
