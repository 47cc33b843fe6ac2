"""weft for TensorFlow: strategies, resolvers and compiled functions run on weft's devices.

    WEFT_DEVICE=tpu-v3-8 python train.py       # an installed package; nothing in the program changes
    import weft.tf                             # or by hand, before strategies are made

TPUStrategy, MirroredStrategy, OneDeviceStrategy and the default strategy (Keras's `fit` without a scope) trace what `strategy.run` is
given once, as one program for all replicas, MultiWorkerMirroredStrategy over several processes; a tf.function that uses variables, called outside of strategies, is a program of one device.
TensorFlow's own bridge to XLA lowers it to StableHLO, weft's plugin runs it. Variables stay on the devices between steps.
Everything else (tf.data, callbacks, eager operations) is TensorFlow's, on the host.

It leans on private parts of TensorFlow. PARTS lists them; TRIED the versions that it was tested with.
"""
import warnings

TRIED = ("2.21",)
PARTS = (
    "tensorflow.compiler.tf2xla.ops.gen_xla_ops: xla_all_reduce, xla_replica_id",
    "tensorflow.python.distribute.distribute_lib: StrategyExtendedV1, ReplicaContext, _DefaultDistributionExtended",
    "tensorflow.python.distribute.input_util, input_lib: get_distributed_dataset, InputWorkers",
    "tensorflow.python.eager.context: Context.get_compiler_ir (stage 'stablehlo')",
    "tensorflow.python.distribute.multi_worker_util: normalize_cluster_spec, worker_count, id_in_cluster",
    "tensorflow.python.framework.func_graph: FuncGraph.watch_variable, captures",
    "tensorflow.python.framework.kernels: get_registered_kernels_for_op",
    "tensorflow.python.framework.ops: EagerTensor, Graph.building_function",
    "tensorflow.python.eager.polymorphic_function: Function.__call__, get_concrete_function, make_function_context, FunctionType",
    "tensorflow.python.eager.record: could_possibly_record",
    "tensorflow.python.framework.composite_tensor: CompositeTensor",
    "tensorflow.python.ops.gen_math_ops: dense_bincount",
    "tensorflow.python.ops.summary_ops_v2: _summary_state, _ResourceSummaryWriter.flush",
    "tensorflow.python.ops.control_flow_ops: XLAControlFlowContext",
    "tensorflow.python.ops.handle_data_util: set_handle_data, create_handle_data",
    "tensorflow.python.ops.control_flow_util: GraphOrParentsInXlaContext",
    "tensorflow.python.ops.cond_v2: _build_cond, _build_case",
    "tensorflow.python.framework.func_graph: FuncGraph._get_function (its graph)",
    "tensorflow.python.profiler.profiler_v2: start, stop",
    "tensorflow.python.autograph.impl.api: what strategy.run wraps a function in, by its file",
    "tensorflow.python.ops.resource_variable_ops: BaseResourceVariable.handle, _handle, _read_variable_op",
    "tensorflow.python.eager.polymorphic_function: ConcreteFunction._call_flat, Function._clone, "
    "Function._list_all_concrete_functions_for_serialization",
)
_installed = False


def install():
    """Puts weft's strategies and devices in TensorFlow's place. Once; later calls do nothing."""
    global _installed
    if _installed:
        return
    _installed = True
    import tensorflow as tf
    version = ".".join(tf.__version__.split(".")[:2])
    try:
        _install(tf)
    except (AttributeError, ImportError) as e:
        raise ImportError(f"weft was made for TensorFlow {', '.join(TRIED)}; this is {tf.__version__}, where it does not find "
                          f"what it needs ({e}). Install one of those, or unset WEFT_DEVICE") from e
    if version not in TRIED:
        warnings.warn(f"weft was tested with TensorFlow {', '.join(TRIED)}; this is {tf.__version__}", stacklevel=2)


def _install(tf):
    from weft.tf import branches, devices, effects, function, linalg, profiler, sizes, state, strategy, trace, workers
    for part in (trace, state, devices, strategy, branches, workers, effects, linalg, sizes, function, profiler):
        part.install()


install()
