"""What programs ask TensorFlow about devices: the cluster resolver, lists of devices, memory."""
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.tpu import tpu_system_metadata

from weft.tf import runtime

PhysicalDevice, LogicalDevice = tf.config.PhysicalDevice, tf.config.LogicalDevice


class TPUClusterResolver(tf.distribute.cluster_resolver.ClusterResolver):
    """tf.distribute.cluster_resolver.TPUClusterResolver: weft's devices are the cluster, whatever its name.

    Without a name it looks for TPUs, and says that there are none (ValueError) where WEFT_DEVICE is a GPU, as TensorFlow does:
    programs fall back on another strategy then.
    """

    def __init__(self, tpu=None, zone=None, project=None, job_name="worker", coordinator_name=None, coordinator_address=None,
                 credentials="default", service=None, discovery_url=None, **kwargs):
        if tpu is None and runtime.device_type() == "GPU":
            raise ValueError("Please provide a TPU Name to connect to: WEFT_DEVICE is a GPU")
        self._tpu = tpu or "local"
        self.task_type, self.task_id = job_name, 0
        self.rpc_layer = None

    @staticmethod
    def connect(tpu=None, zone=None, project=None):
        resolver = TPUClusterResolver(tpu, zone, project)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return resolver

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        return ""

    get_master = master

    def get_job_name(self):
        return self.task_type

    @property
    def environment(self):
        return ""

    @property
    def tpu_hardware_feature(self):
        return None

    def cluster_spec(self):
        return tf.train.ClusterSpec({})

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        return {"TPU": runtime.count()}

    def get_tpu_system_metadata(self):
        n = runtime.count()
        return tpu_system_metadata.TPUSystemMetadata(num_cores=n, num_hosts=1, num_of_cores_per_host=n, topology=None,
                                                     devices=list_logical_devices("TPU"))


# ---- lists ------------------------------------------------------------------------------------------------------------------


def _types():
    """The types of device that weft's count as: a host's devices as TPUs, since programs for TPUs run on them."""
    return ("TPU",) if runtime.device_type() in ("TPU", "CPU") else ("GPU",)


def _listing(original, made, name):
    def listed(device_type=None):
        out = list(original(device_type)) if device_type not in ("TPU", "GPU") else []
        return out + [made(name.format(t, i), t) for t in _types() if device_type in (None, t) for i in range(runtime.count())]
    listed.__doc__ = original.__doc__
    return listed


list_physical_devices = _listing(tf.config.list_physical_devices, PhysicalDevice, "/physical_device:{}:{}")
list_logical_devices = _listing(tf.config.list_logical_devices, LogicalDevice, "/device:{}:{}")


def _ours(device):
    return getattr(device, "device_type", None) in ("TPU", "GPU")


def _unless_ours(original, answer=None):
    """A setting of a device that has no meaning for weft's."""
    def wrapped(device, *args, **kwargs):
        return answer if _ours(device) else original(device, *args, **kwargs)
    wrapped.__doc__ = original.__doc__
    return wrapped


def _set_visible_devices(original):
    def set_visible_devices(devices, device_type=None):
        theirs = [d for d in (devices if isinstance(devices, (list, tuple)) else [devices] if devices else []) if not _ours(d)]
        if theirs and device_type not in ("TPU", "GPU"):
            original(theirs, device_type)
    return set_visible_devices


def get_memory_info(device):
    """tf.config.experimental.get_memory_info: bytes on a device now and at most; "limit" is the chip's."""
    index = tf.DeviceSpec.from_string(device if device.startswith("/") else "/device:" + device).device_index or 0
    stats = runtime.client().memory(index)
    return {"current": stats.bytes_in_use, "peak": stats.peak_bytes_in_use, "limit": stats.bytes_limit}


def reset_memory_stats(device):
    index = tf.DeviceSpec.from_string(device if device.startswith("/") else "/device:" + device).device_index or 0
    runtime.client().clear_memory_peak(index)


def get_device_details(device):
    return {"device_name": runtime.client().kind()}


# ---- connecting ---------------------------------------------------------------------------------------------------------------


def connect_to_cluster(cluster_spec_or_resolver=None, *args, **kwargs):
    """Nothing is to be connected: the devices are in this process."""


def initialize_tpu_system(cluster_resolver=None):
    """The devices' topology, as tf.tpu.experimental.initialize_tpu_system returns it."""
    n = runtime.count()
    from tensorflow.python.tpu.topology import Topology
    coordinates = [[[i // 2, 0, 0, i % 2] for i in range(n)]]
    return Topology(mesh_shape=[max(1, (n + 1) // 2), 1, 1, min(n, 2)], device_coordinates=coordinates)


def no_cudnn(**kwargs):
    """Keras tries cuDNN's recurrent layers where there are GPUs, and falls back on its own by this error."""
    raise tf.errors.NotFoundError(None, None, "weft computes recurrent layers as their steps; there is no cuDNN")


def install():
    """Puts these in place of TensorFlow's."""
    tf.raw_ops.CudnnRNNV3 = tf.raw_ops.CudnnRNNV2 = tf.raw_ops.CudnnRNN = no_cudnn
    cluster_resolver = tf.distribute.cluster_resolver
    cluster_resolver.TPUClusterResolver = TPUClusterResolver
    for config in (tf.config, tf.config.experimental):
        for name, ours in (("list_physical_devices", list_physical_devices), ("list_logical_devices", list_logical_devices)):
            setattr(config, name, ours)
        config.set_visible_devices = _set_visible_devices(config.set_visible_devices)
    experimental = tf.config.experimental
    experimental.set_memory_growth = _unless_ours(experimental.set_memory_growth)
    experimental.get_memory_growth = _unless_ours(experimental.get_memory_growth, False)
    experimental.get_memory_info, experimental.reset_memory_stats = get_memory_info, reset_memory_stats
    details = experimental.get_device_details
    experimental.get_device_details = lambda device: get_device_details(device) if _ours(device) else details(device)
    tf.config.experimental_connect_to_cluster = tf.config.experimental_connect_to_host = connect_to_cluster
    tf.tpu.experimental.initialize_tpu_system = initialize_tpu_system
    tf.tpu.experimental.shutdown_tpu_system = lambda cluster_resolver=None: None
    context.context().soft_device_placement = True  # with tf.device("/GPU:0"): TensorFlow has none
