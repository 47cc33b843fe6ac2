"""The device of PyTorch/XLA: loaded through the entry point group `torch_xla.plugins` by `import torch_xla`.

Private parts of torch_xla that are used: `_internal.tpu.TpuPlugin`, whose own entry point would win where PJRT_DEVICE is TPU,
`_internal.tpu.num_available_devices` and `num_available_chips`, which look for TPUs on the PCI bus, and those that replicas.py, groups.py,
amp.py and checkpoint.py name. A version that lacks them gets a sentence.
"""
import os
import re
import warnings

import torch_xla._internal.tpu
from torch_xla.experimental import plugins

from weft import device_count, library_path
from weft.torch import device, device_type


class Plugin(plugins.DevicePlugin):
    """All devices are in one process: xmp.spawn runs a thread for each."""

    def library_path(self):
        return library_path()

    def physical_chip_count(self):
        return 1

    def configure_single_process(self):
        pass

    def configure_multiprocess(self, local_rank, local_world_size):
        pass

    def requires_xla_coordinator(self):
        return _processes() > 1

    def client_create_options(self):
        # torch_xla 2.9 takes this for the hardware's name, and ends the process where it is "cuda"
        options = {"platform_name": "tpu" if os.environ.get("PJRT_DEVICE", "").startswith("TPU") else "weft"}
        if self.requires_xla_coordinator():
            options |= {"num_nodes": _processes(), "node_id": int(os.environ["RANK"])}
        return options


def _processes():
    """Of torchrun's job; 1: it did not start this one."""
    return int(os.environ["WORLD_SIZE"]) if "TORCHELASTIC_RUN_ID" in os.environ and "RANK" in os.environ else 1


def _tpu_environment(spec):
    """What torch_xla asks a TPU's host for. A slice's name, as "v5litepod-8", is only looked at for its generation."""
    found = re.search(r"v?(\d+)\s*([a-z]*)[^:\d]*(\d*)", re.sub(r"^(google[ -])?tpu[ -_]?", "", spec.lower()))
    generation, letter, count = found.groups() if found else ("4", "", "")
    return {
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_ACCELERATOR_TYPE": f"v{generation}{letter[:1] if letter[:1] in ('e', 'p') else ''}-{count or 1}",
        "TPU_PROCESS_BOUNDS": "1,1,1",
        "TPU_CHIPS_PER_PROCESS_BOUNDS": "1,1,1",
        "TPU_WORKER_ID": "0",
        "TPU_WORKER_HOSTNAMES": "localhost",
    }


def _count(kind):
    """What Lightning asks before replicas start: the devices that there are, opened by nobody yet."""
    tpu = torch_xla._internal.tpu
    tpu.num_available_devices = device_count
    if kind.startswith("TPU"):
        tpu.num_available_chips = lambda: max(1, device_count() // tpu.num_logical_cores_per_chip())


def _choose():
    """Makes the device of WEFT_DEVICE PyTorch/XLA's. Before torch_xla chooses one itself, and before it reads the variables."""
    spec = device()
    kind = os.environ.setdefault("PJRT_DEVICE", device_type(spec))
    if kind == "CPU":
        warnings.warn(f"WEFT_DEVICE={spec} is not used: PJRT_DEVICE=CPU asks for torch_xla's own CPU device")
        return
    if kind.startswith("TPU"):
        for name, value in _tpu_environment(spec).items():
            os.environ.setdefault(name, value)
        os.environ.setdefault("TPU_LIBRARY_PATH", library_path())
    if hasattr(torch_xla._internal.tpu, "TpuPlugin"):
        torch_xla._internal.tpu.TpuPlugin = Plugin  # where its entry point comes after ours
    else:
        warnings.warn("this version of torch_xla has no TpuPlugin: weft may not be what PJRT_DEVICE=TPU loads")
    _count(kind)
    for name in {"TPU", "CUDA", kind.split("_")[0]}:
        plugins.register_plugin(name, Plugin())


def entry():
    """The class that torch_xla registers as device type WEFT."""
    if device():
        _choose()
    if os.environ.get("PJRT_DEVICE", "").split("_")[0] != "CPU":
        from weft.torch import amp, batch_norm, checkpoint, complexes, ddp, inference, kernels, lines, optimizers, replicas, sequences
        for part in (replicas, amp, optimizers, lines, checkpoint, kernels, complexes, batch_norm, sequences, inference, ddp):
            part.prepare()
    return Plugin()
