"""PyTorch on weft.

PyTorch/XLA programs run unchanged; PyTorch/XLA finds this package by itself:

    WEFT_DEVICE=tpu-v5e python train.py        # torch_xla.device() is a virtual TPU v5e
    WEFT_DEVICE=cpu:4 python train.py          # torch_xla.launch: four replicas on this CPU

WEFT_DEVICE chooses what PyTorch/XLA takes the device for: "TPU" for a TPU, "CUDA" for a GPU, else "WEFT". Without it
nothing changes, but for PJRT_DEVICE=WEFT, which is this CPU.

Tried with torch_xla 2.9. What this package needs of its private parts is named in the modules that use them.
"""
import os
import re


def device() -> str:
    """What WEFT_DEVICE names; "" when it is not set."""
    return os.environ.get("WEFT_DEVICE", "").strip()


def device_type(spec: str) -> str:
    """PyTorch/XLA's word for a device of weft."""
    name = spec.lower()
    if re.match(r"(google[ -])?(tpu|v[2-9])", name):
        return "TPU"
    return "WEFT" if re.match(r"(cpu|interp|null)?(:|$)", name) else "CUDA"
