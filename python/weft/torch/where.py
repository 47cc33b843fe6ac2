"""Where a tensor lies."""
import torch


def on_device(value):
    """Whether it is a tensor on PyTorch/XLA's device, whatever it says to scripts for "cuda" (cuda/device.py)."""
    if not isinstance(value, torch.Tensor):
        return False
    with torch._C.DisableTorchFunction():
        return value.device.type == "xla"
