"""tf.distribute's strategies on weft's devices: one program for all replicas, exchanges inside it."""
import contextlib
import functools
import threading
import types

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.autograph.impl import api as autograph_api
from tensorflow.python.distribute import device_util, distribute_lib, distribute_utils, input_lib, input_util, reduce_util, values
from tensorflow.python.framework.composite_tensor import CompositeTensor
from tensorflow.python.ops import resource_variable_ops as rv

from weft.tf import effects, room, runtime, trace
from weft.tf.program import Program

MEAN = reduce_util.ReduceOp.MEAN


class ReplicaContext(distribute_lib.ReplicaContext):
    """Within strategy.run: all replicas are traced as one, its id is a number that the program asks for."""

    @property
    def devices(self):
        return (device_util.resolve("/device:CPU:0"),)

    def all_gather(self, value, axis, options=None):
        """TensorFlow's own has a gradient that slices by the replica's number, where a program's sizes are to be known."""
        n = self.strategy.num_replicas_in_sync

        @tf.custom_gradient
        def gathered(x):
            def grad(dy):
                return tf.gather(tf.stack(tf.split(all_reduce(dy, n), n, axis)), replica_id(n))
            return tf.concat(tf.unstack(all_gather(x, n)), axis), grad

        def one(x):
            if isinstance(x, tf.IndexedSlices):
                raise NotImplementedError("all_gather does not support IndexedSlices")
            x = tf.convert_to_tensor(x)
            return gathered(x) if n > 1 else x
        return tf.nest.map_structure(one, value)


class Extended(distribute_lib.StrategyExtendedV1):
    """See tf.distribute.StrategyExtended. keeps_sparse: sums of tf.IndexedSlices over replicas stay such."""

    keeps_sparse = True

    def __init__(self, strategy, devices):
        super().__init__(strategy)
        self.devices = tuple(devices)
        self._cpu = device_util.resolve("/device:CPU:0")
        self._calls = {}

    # ---- devices: TensorFlow's part is done on the host

    @property
    def _num_replicas_in_sync(self):
        return len(self.devices)

    @property
    def worker_devices(self):
        return tuple(self._cpu for _ in self.devices)

    @property
    def parameter_devices(self):
        return (self._cpu,)

    experimental_enable_get_next_as_optional = True  # replicas for which no data are left get a batch of no rows
    experimental_should_init = should_checkpoint = should_save_summary = True
    experimental_between_graph = False
    _global_batch_size = True
    _support_per_replica_values = True

    @property
    def num_hosts(self):
        return 1

    def non_slot_devices(self, var_list):
        return (self._cpu,)

    def _in_multi_worker_mode(self):
        return False

    def _use_merge_call(self):
        return False

    def _get_local_replica_id(self, replica_id_in_sync_group):
        return replica_id_in_sync_group

    def _validate_colocate_with_variable(self, colocate_with_variable):
        distribute_utils.validate_colocate(colocate_with_variable, self)

    # ---- data

    def _workers(self):
        return input_lib.InputWorkers([(self._cpu, self.worker_devices)])

    def _input_context(self):
        return distribute_lib.InputContext(1, 0, self._num_replicas_in_sync)

    def _experimental_distribute_dataset(self, dataset, options):
        return input_util.get_distributed_dataset(dataset, self._workers(), self._container_strategy(),
                                                  num_replicas_in_sync=self._num_replicas_in_sync, options=options)

    def _distribute_datasets_from_function(self, dataset_fn, options):
        return input_util.get_distributed_datasets_from_function(dataset_fn, self._workers(), [self._input_context()],
                                                                 self._container_strategy(), options=options)

    def _experimental_distribute_values_from_function(self, value_fn):
        first, n = self._replica_id(0), self._num_replicas_in_sync
        return distribute_utils.regroup([value_fn(distribute_lib.ValueContext(first + i, n)) for i in range(len(self.devices))],
                                        always_wrap=True)

    def _replica_id(self, i):
        """The number among all replicas of this process's i-th."""
        return i

    # ---- variables

    def _create_variable(self, next_creator, **kwargs):
        kwargs.pop("colocate_with", None)
        with tf.device(self._cpu):
            return next_creator(**kwargs)

    def read_var(self, var):
        return var.read_value()

    def _update(self, var, fn, args, kwargs, group):
        with _updating():
            result = fn(var, *args, **kwargs)
        return result if group else tf.nest.map_structure(self._local_results, result)

    def _update_non_slot(self, colocate_with, fn, args, kwargs, group):
        result = fn(*args, **kwargs)
        return result if group else tf.nest.map_structure(self._local_results, result)

    def _replica_ctx_update(self, var, fn, args=(), kwargs=None, group=True):
        return self._update(var, fn, args, kwargs or {}, group)

    # ---- values of all replicas

    def _local_results(self, val):
        if isinstance(val, values.DistributedValues):
            return val.values
        return (val,)

    def value_container(self, value):
        return value

    def _reduce_to(self, reduce_op, value, destinations, options):
        if trace.owner() is not None:  # within merge_call
            return self._replica_ctx_all_reduce(reduce_op, value)
        if isinstance(value, (tuple, list, dict)):
            return tf.nest.map_structure(lambda v: self._reduce_to(reduce_op, v, destinations, options), value)
        if isinstance(value, values.DistributedValues):
            total = tf.add_n([tf.convert_to_tensor(v) for v in value.values])
            return tf.cast(total / tf.cast(len(value.values), total.dtype), total.dtype) if reduce_op == MEAN else total
        n = self._num_replicas_in_sync
        if reduce_op == MEAN or n == 1 or isinstance(value, (str, bytes)):
            return value
        return value * n  # the same on all replicas

    def _batch_reduce_to(self, reduce_op, value_destination_pairs, options):
        return [self._reduce_to(reduce_op, value, to, options) for value, to in value_destination_pairs]

    def _gather_to_implementation(self, value, destinations, axis, options):
        if trace.owner() is not None:  # within a replica's all_gather
            return tf.concat(tf.unstack(all_gather(value, self._num_replicas_in_sync)), axis)
        if isinstance(value, values.DistributedValues):
            return tf.concat([tf.convert_to_tensor(v) for v in value.values], axis)
        return value

    def _broadcast_to(self, tensor, destinations):
        return tensor

    # ---- within a replica

    def _replica_ctx_all_reduce(self, reduce_op, value, options=None):
        n = self._num_replicas_in_sync

        def one(x):
            if isinstance(x, tf.IndexedSlices) and self.keeps_sparse:
                return sparse(x)
            total = all_reduce(x, n)
            return total / tf.cast(n, total.dtype) if reduce_op == MEAN else total

        def sparse(x):
            """Gradients of embeddings: the rows of all replicas, one after another. Optimizers see a row for each time that a word comes."""
            if n == 1:
                return x
            parts = room.filled(x.values, x.indices)
            rows, indices = (tf.concat(tf.unstack(all_gather(part, n)), 0) for part in parts)
            return tf.IndexedSlices(rows / tf.cast(n, rows.dtype) if reduce_op == MEAN else rows, indices, x.dense_shape)
        return tf.nest.map_structure(one, value)

    def _call_for_each_replica(self, fn, args, kwargs):
        if (owner := trace.owner()) is not None:  # a program within a program is a part of it
            n = self._num_replicas_in_sync
            if n > 1 and owner is not self._container_strategy():
                raise trace.HostOnly("it calls strategy.run")
            with ReplicaContext(self._container_strategy(), replica_id(n)):
                return fn(*args, **kwargs)
        return call(self._container_strategy(), self.devices, fn, args, kwargs, self._calls)


def replica_id(n):
    return gen_xla_ops.xla_replica_id() if n > 1 else tf.constant(0)


def all_reduce(x, n):
    """The sum over n replicas, within a program."""
    x = tf.convert_to_tensor(x)
    if n == 1:
        return x
    if x.dtype in (tf.float16, tf.bfloat16, tf.float32, tf.int32, tf.uint32):
        return gen_xla_ops.xla_all_reduce(x, group_assignment=[list(range(n))], reduce_op="Add", mode="CrossReplica")
    if x.dtype.is_bool:
        raise TypeError("weft: all_reduce of bool values; cast them first")
    return tf.reduce_sum(all_gather(x, n), 0)  # the bridge's all-reduce knows no other types


def all_gather(x, n):
    """The values of n replicas, within a program: [replica, ...]. Each adds its own bits to zeros of the others."""
    x = tf.convert_to_tensor(x)
    short = tf.int16 if x.dtype.is_floating and x.dtype.size == 2 else None
    bits = tf.bitcast(x, tf.int32) if x.dtype.size >= 4 else tf.cast(tf.bitcast(x, short) if short else x, tf.int32)
    mine = tf.one_hot(replica_id(n), n, dtype=tf.int32)
    rows = all_reduce(tf.reshape(mine, [n] + [1] * bits.shape.rank) * bits, n)
    if x.dtype.size >= 4:
        return tf.bitcast(rows, x.dtype)
    return tf.bitcast(tf.cast(rows, short), x.dtype) if short else tf.cast(rows, x.dtype)


# ---- writes within a replica -------------------------------------------------------------------------------------------------

_here = threading.local()


@contextlib.contextmanager
def _updating():
    """Within extended.update: values are the same on all replicas already."""
    before = getattr(_here, "updating", False)
    _here.updating = True
    try:
        yield
    finally:
        _here.updating = before


def _aggregated(variable, value):
    """What a replica writes to a variable that all share, put together as the variable's aggregation says. (ONLY_FIRST_REPLICA: as
    TPUStrategy has it, each replica writes its own, and the first one's is seen.)"""
    owner = trace.owner()
    if owner is None or owner.num_replicas_in_sync == 1 or getattr(_here, "updating", False):
        return value
    shared = variable.synchronization != tf.VariableSynchronization.ON_READ
    if not shared or variable.aggregation not in (tf.VariableAggregation.SUM, tf.VariableAggregation.MEAN):
        return value
    n = owner.num_replicas_in_sync
    total = all_reduce(tf.cast(value, variable.dtype), n)
    return total if variable.aggregation == tf.VariableAggregation.SUM else tf.cast(total / tf.cast(n, total.dtype), total.dtype)


def _assigning(method):
    def wrapped(self, *args, **kwargs):
        if args:
            args = (_aggregated(self, args[0]), *args[1:])
        kwargs = {k: _aggregated(self, v) if k in ("value", "delta") else v for k, v in kwargs.items()}
        return method(self, *args, **kwargs)
    wrapped.__name__, wrapped.__doc__ = method.__name__, method.__doc__
    return tf.autograph.experimental.do_not_convert(wrapped)


# ---- one call --------------------------------------------------------------------------------------------------------------


class _Call:
    """A function with arguments of certain types as a program, and how its results are put together again."""

    def __init__(self, strategy, devices, fn, structure, flat, specs):
        n = strategy.num_replicas_in_sync

        def replica(*tensors):
            tensors = iter(tensors)
            args, kwargs = tf.nest.pack_sequence_as(structure, [x if s is None else next(tensors) for x, s in zip(flat, specs)])
            with effects.collected() as self.effects, ReplicaContext(strategy, replica_id(n)):
                self.structure = fn(*args, **kwargs)
            self.flat = tf.nest.flatten(self.structure, expand_composites=True)
            self.is_tensor = [tf.is_tensor(x) for x in self.flat]
            results = [tf.convert_to_tensor(x) for x, t in zip(self.flat, self.is_tensor) if t]
            return results + [tf.identity(x) for x in self.effects.tensors]
        self.program = Program.of(replica, getattr(fn, "__name__", "replica"), [s for s in specs if s is not None], devices, strategy)

    def pack(self, rows):
        """The results: rows[replica][result] in the function's structure. What the step says besides is said."""
        n = sum(self.is_tensor)
        self.effects.happen([row[n:] for row in rows])

        def of_replica(row):
            tensors = iter(row)
            return tf.nest.pack_sequence_as(self.structure, [next(tensors) if t else x for x, t in zip(self.flat, self.is_tensor)],
                                            expand_composites=True)
        replicas = [tf.nest.flatten(of_replica(row)) for row in rows]
        out = []
        for xs in zip(*replicas):
            per_replica = len(rows) > 1 and isinstance(xs[0], (tf.Tensor, CompositeTensor))
            out.append(values.PerReplica(list(xs)) if per_replica else xs[0])
        return tf.nest.pack_sequence_as(self.structure, out)


def _spec(xs):
    """The tf.TensorSpec of an argument, given for all replicas; None for what is no tensor. What differs is open."""
    if not isinstance(xs[0], (tf.Tensor, np.ndarray, np.generic)):
        return None
    shapes = [tf.TensorShape(x.shape) for x in xs]
    shape = shapes[0]
    for s in shapes[1:]:
        shape = shape.most_specific_compatible_shape(s)
    return tf.TensorSpec(shape, tf.as_dtype(xs[0].dtype))


class _Same:
    """An object as a part of a key: the same only as itself. It lives as long as the key, so that no other gets its address."""
    __slots__ = ("it",)

    def __init__(self, it):
        self.it = it

    def __eq__(self, other):
        return isinstance(other, _Same) and self.it is other.it

    def __hash__(self):
        return id(self.it)


def _part(x):
    return (type(x), x) if isinstance(x, (int, float, complex, str, bytes, bool, type(None))) else _Same(x)


@functools.lru_cache(None)
def _names(code):
    """What a function's code, with that of functions within it, may take from its module."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return tuple(dict.fromkeys([*code.co_names, *(name for c in inner for name in _names(c))]))


def _identity(fn):
    """What makes a function the same when it is made again in each round of a loop: its code and what that uses from around it."""
    while getattr(getattr(fn, "__code__", None), "co_filename", None) == autograph_api.__file__ and hasattr(fn, "__wrapped__"):
        fn = fn.__wrapped__  # strategy.run has wrapped it anew
    bound = getattr(fn, "__self__", None)
    fn = getattr(fn, "__func__", fn)
    if not isinstance(fn, types.FunctionType):
        return _Same(fn), _Same(bound)
    try:
        cells = tuple(_part(c.cell_contents) for c in fn.__closure__ or ())
    except ValueError:  # an empty cell
        return _Same(fn), _Same(bound)
    around = tuple(_part(fn.__globals__[name]) for name in _names(fn.__code__) if name in fn.__globals__)
    return fn.__code__, _Same(bound), cells, around, tuple(map(_part, fn.__defaults__ or ()))


def call(strategy, devices, fn, args, kwargs, known):
    """Runs fn(*args, **kwargs) on each device, with that replica's part of distributed values. known: programs of earlier calls."""
    n, flat = len(devices), tf.nest.flatten((args, kwargs))
    columns = [x.values if isinstance(x, values.DistributedValues) else (x,) * n for x in flat]
    specs = [_spec(xs) for xs in columns]
    firsts = [xs[0] for xs in columns]
    inputs = [[xs[r] for xs, s in zip(columns, specs) if s is not None] for r in range(n)]
    make = lambda: _Call(strategy, devices, fn, (args, kwargs), firsts, specs)  # noqa: E731
    if tf.executing_eagerly():
        static = tuple(_part(x) for x, s in zip(firsts, specs) if s is None)
        key = (_identity(fn), tuple(specs), static, str(tf.nest.map_structure(lambda _: 0, (args, kwargs))))
        c = known.get(key)
        if c is None:
            c = known[key] = make()
        rows = c.program.run([[np.asarray(x) for x in row] for row in inputs])
        return c.pack([[tf.constant(x, t) for x, t in zip(row, c.program.output_types)] for row in rows])
    c = make()
    return c.pack(_in_graph(c.program, inputs))


def _in_graph(program, inputs):
    """The program as an operation of a graph that the host runs."""
    n = len(inputs)
    inputs = [[*row, *program.outer] for row in inputs]
    m = len(inputs[0])
    types_ = program.output_types

    def run(*arrays):
        rows = program.run([arrays[r * m:(r + 1) * m] for r in range(n)])
        return [x for row in rows for x in row] or [np.int32(0)]
    outs = trace.operation(run, [x for row in inputs for x in row], list(types_) * n or [tf.int32])
    for i, out in enumerate(outs if types_ else ()):
        out.set_shape(program.output_shapes[i % len(types_)])
    return [outs[r * len(types_):(r + 1) * len(types_)] for r in range(n)]


# ---- the strategies ----------------------------------------------------------------------------------------------------------


class Strategy(distribute_lib.Strategy):
    """Data parallel on devices of weft's. devices: positions; None: all."""

    def __init__(self, devices=None):
        super().__init__(Extended(self, range(runtime.count()) if devices is None else devices))


class TPUStrategy(Strategy):
    """tf.distribute.TPUStrategy on weft's devices."""

    def __init__(self, tpu_cluster_resolver=None, experimental_device_assignment=None, experimental_spmd_xla_partitioning=False):
        super().__init__()
        self.extended.keeps_sparse = False  # on a TPU gradients of embeddings are dense
        self._tpu_cluster_resolver = tpu_cluster_resolver

    @property
    def cluster_resolver(self):
        return self._tpu_cluster_resolver


class MirroredStrategy(Strategy):
    """tf.distribute.MirroredStrategy on weft's devices. devices: their names ("GPU:0"); None: all."""

    def __init__(self, devices=None, cross_device_ops=None):
        super().__init__(None if devices is None else [_position(d) for d in devices])


class OneDeviceStrategy(Strategy):
    """tf.distribute.OneDeviceStrategy on a device of weft's."""

    def __init__(self, device):
        super().__init__([_position(device)])


def _position(name):
    """A device's position from what programs call it."""
    index = tf.DeviceSpec.from_string(device_util.canonicalize(str(getattr(name, "name", name)))).device_index or 0
    if index >= runtime.count():
        raise ValueError(f"there is no device {name}: WEFT_DEVICE gives {runtime.count()}")
    return index


def install():
    """Puts these in place of TensorFlow's, the default strategy's part among them."""
    for module in (tf.distribute, tf.compat.v2.distribute):
        module.TPUStrategy = module.experimental.TPUStrategy = TPUStrategy
        module.MirroredStrategy, module.OneDeviceStrategy = MirroredStrategy, OneDeviceStrategy
    for cls in (rv.BaseResourceVariable, rv.ResourceVariable):  # the latter wraps what it inherits
        for name in ("assign", "assign_add", "assign_sub"):
            if name in cls.__dict__:
                setattr(cls, name, _assigning(cls.__dict__[name]))
    default = distribute_lib._DefaultDistributionExtended

    def call_for_each_replica(self, fn, args, kwargs):
        strategy = self._container_strategy()
        if trace.owner() is None:
            try:
                return call(strategy, (0,), fn, args, kwargs, self.__dict__.setdefault("_weft_calls", {}))
            except trace.NotCompiled as e:
                runtime.on_host(e)
        with distribute_lib.ReplicaContext(strategy, replica_id_in_sync_group=0):
            return fn(*args, **kwargs)
    default._call_for_each_replica = call_for_each_replica
    original = default.update

    def update(self, var, fn, args=(), kwargs=None, group=True):
        """An optimizer that was made outside of the strategy's scope knows the default one alone; its variables are the program's."""
        owner = trace.owner()
        mine = self if owner is None or owner.extended is self else owner.extended
        return (original if mine is self else type(mine).update)(mine, var, fn, args, kwargs, group)
    default.update = update
