"""MultiWorkerMirroredStrategy: a process for each worker of TF_CONFIG, which compute together.

The first worker's address is where the processes find each other. What strategy.run is given is one program over the devices of all
workers. What is reduced or gathered outside of it, and the values that variables begin with, go between the processes as exchange.py
has it. All workers have to do the same in the same order, as with TensorFlow's own.
"""
import numpy as np
import tensorflow as tf
from tensorflow.python.distribute import distribute_lib, input_util, multi_worker_util, values
from tensorflow.python.trackable import base as trackable

from weft.tf import exchange, pjrt, runtime, trace
from weft.tf.strategy import MEAN, Extended, Strategy


class WorkersExtended(Extended):
    """Data parallel over all devices of several processes."""

    def __init__(self, strategy, worker, workers):
        super().__init__(strategy, range(runtime.count()))
        self.worker, self.workers = worker, workers

    # ---- devices

    @property
    def _num_replicas_in_sync(self):
        return len(self.devices) * self.workers

    def _replica_id(self, i):
        return self.worker * len(self.devices) + i

    def _get_replica_id_in_sync_group(self, replica_id):
        return self._replica_id(replica_id)

    def _get_local_replica_id(self, replica_id_in_sync_group):
        return replica_id_in_sync_group - self._replica_id(0)

    experimental_between_graph = True

    @property
    def should_checkpoint(self):
        return self.worker == 0

    should_save_summary = should_checkpoint

    def _in_multi_worker_mode(self):
        return True

    # ---- data: each worker has its part

    def _input_context(self):
        return distribute_lib.InputContext(self.workers, self.worker, self._num_replicas_in_sync)

    def _experimental_distribute_dataset(self, dataset, options):
        return input_util.get_distributed_dataset(dataset, self._workers(), self._container_strategy(),
                                                  num_replicas_in_sync=self._num_replicas_in_sync,
                                                  input_context=self._input_context(), options=options)

    # ---- variables: all begin with the first worker's values

    def _create_variable(self, next_creator, **kwargs):
        initial = kwargs.get("initial_value")

        def value():
            made = initial() if callable(initial) else initial
            if isinstance(made, trackable.CheckpointInitialValue):
                made = made.wrapped_value
            return _of_first(tf.convert_to_tensor(made, kwargs.get("dtype")))
        if initial is not None:
            kwargs["initial_value"] = value
        return super()._create_variable(next_creator, **kwargs)

    # ---- values of all workers

    def _reduce_to(self, reduce_op, value, destinations, options):
        if trace.owner() is not None or isinstance(value, (tuple, list, dict)):
            return super()._reduce_to(reduce_op, value, destinations, options)
        mine = value.values if isinstance(value, values.DistributedValues) else (value,)
        total = tf.add_n([tf.convert_to_tensor(v) for v in mine])
        mean = reduce_op == MEAN
        if mean and len(mine) > 1:
            total = tf.cast(total / len(mine), total.dtype)
        return _between_processes(lambda x: exchange.reduce(x, mean), total, total.shape)

    def _gather_to_implementation(self, value, destinations, axis, options):
        mine = super()._gather_to_implementation(value, destinations, axis, options)
        if trace.owner() is not None:
            return mine
        mine = tf.convert_to_tensor(mine)
        shape = mine.shape.as_list() if mine.shape.rank is not None else None
        if shape:
            shape[axis] = None
        return _between_processes(lambda x: exchange.concat(x, axis), mine, tf.TensorShape(shape))


def _between_processes(function, tensor, shape):
    """What a function makes of a tensor's array and the other processes': now, or when the graph that is being made runs."""
    if isinstance(tensor, tf.Tensor) and hasattr(tensor, "numpy"):
        return tf.constant(function(tensor.numpy()), tensor.dtype)
    out = trace.operation(lambda x: np.asarray(function(x), x.dtype), [tensor], [tensor.dtype], program=False)[0]
    out.set_shape(shape)
    return out


def _of_first(tensor):
    return _between_processes(exchange.of_first, tensor, tensor.shape)


class MultiWorkerMirroredStrategy(Strategy):
    """tf.distribute.MultiWorkerMirroredStrategy on weft's devices. With several workers it returns when all have come."""

    def __init__(self, cluster_resolver=None, communication_options=None):
        self._cluster_resolver = cluster_resolver or tf.distribute.cluster_resolver.TFConfigClusterResolver()
        worker, workers, first = _place(self._cluster_resolver)
        if workers == 1:
            super().__init__()
            return
        runtime.join(pjrt.Job(worker, workers, first))
        distribute_lib.Strategy.__init__(self, WorkersExtended(self, worker, workers))

    @property
    def cluster_resolver(self):
        return self._cluster_resolver

    def reduce(self, reduce_op, value, axis):
        """See tf.distribute.Strategy.reduce. Numbers have no axis: they are reduced over the replicas alone, which is what Keras's fit
        means by axis 0 of its losses (TensorFlow's own refuses that)."""
        of = value.values if isinstance(value, values.DistributedValues) else (value,)
        return super().reduce(reduce_op, value, None if all(len(getattr(v, "shape", ())) == 0 for v in of) else axis)


def _place(resolver):
    """Which worker this is of how many, and the first one's address."""
    spec = multi_worker_util.normalize_cluster_spec(resolver.cluster_spec())
    jobs, task, index = spec.as_dict(), resolver.task_type, resolver.task_id
    if not jobs or task == "evaluator":
        return 0, 1, ""
    if task is None or index is None:
        raise ValueError("weft: TF_CONFIG has a cluster, but no task: which worker of it is this?")
    workers = multi_worker_util.worker_count(spec, task)
    return multi_worker_util.id_in_cluster(spec, task, index), workers, (*jobs.get("chief", ()), *jobs.get("worker", ()))[0]


def _refused(name):
    class Refused:
        def __init__(self, *args, **kwargs):
            raise NotImplementedError(f"weft has no tf.distribute.{name}: workers that read and write variables of a server when they like "
                                      "are no program that devices run together. Use MultiWorkerMirroredStrategy, or "
                                      "MirroredStrategy on WEFT_DEVICE=cpu:8")
    Refused.__name__ = Refused.__qualname__ = name
    return Refused


def install():
    """Puts these in place of TensorFlow's."""
    for module in (tf.distribute, tf.compat.v2.distribute):
        module.MultiWorkerMirroredStrategy = module.experimental.MultiWorkerMirroredStrategy = MultiWorkerMirroredStrategy
        module.ParameterServerStrategy = module.experimental.ParameterServerStrategy = _refused("ParameterServerStrategy")
