"""TorchTPU (torch_tpu, device "tpu") on weft: WEFT_DEVICE=tpu-v5e python train.py. weft/hook.py calls these.

TorchTPU opens the plugin that TPU_LIBRARY_PATH names, once it has seen a TPU on the PCI bus; here it sees the one of WEFT_DEVICE. A
process has one device, as one of TorchTPU's has. WEFT_DEVICE=cpu computes in full precision.

Attention is computed by its plain form, product by product: the fused one is a program of the chip's own (Mosaic) within the program.

Private parts of torch_tpu that are used: `_internal.utils.hardware`. Tried with torch_tpu 0.2.0.
"""
import os
import re

from weft import library_path
from weft.torch import device

GENERATIONS = {"4": "V4", "5p": "V5P", "5e": "V5E", "5litepod": "V5E", "6e": "V6E", "7": "V7", "7x": "V7"}


def prepare(_):
    """Before torch_tpu is imported: it opens weft's plugin."""
    os.environ.setdefault("TPU_LIBRARY_PATH", library_path())


def generation(spec):
    """TorchTPU's name of a TPU of weft's, of TpuVersion; "UNKNOWN" for what it has none for, v2 and v3 and other devices."""
    found = re.match(r"(?:google[ -])?(?:tpu)?[ -]?v?(\d+(?:litepod|[a-z])?)", spec.lower())
    return GENERATIONS.get(found.group(1), "UNKNOWN") if found else "UNKNOWN"


def hardware(module):
    """After torch_tpu._internal.utils.hardware is imported: what it finds on the PCI bus."""
    version = module.TpuVersion[generation(device())]
    module.get_tpu_device_count = lambda: 1
    module.get_tpu_device_name = lambda: version.value
    module.get_tpu_version = lambda: version


def loaded(_):
    """After torch_tpu is imported: scaled_dot_product_attention takes its plain form."""
    from torch.backends import cuda  # its switches are those of all devices
    for form in ("cudnn", "flash", "mem_efficient"):
        getattr(cuda, f"enable_{form}_sdp")(False)
