"""torch_xla.amp.autocast computes in bfloat16 on TPUs and does nothing elsewhere. On weft's other devices it does what
torch.autocast("xla") does.

Private parts of torch_xla that are used: `amp.autocast_mode.autocast.__init__`.
"""
import functools

import torch
import torch_xla.core.xla_model as xm


def prepare():
    try:
        from torch_xla.amp.autocast_mode import autocast
    except ImportError:
        return
    as_it_was = autocast.__init__
    if getattr(as_it_was, "of_weft", False):
        return

    @functools.wraps(as_it_was)
    def init(self, device, enabled=True, dtype=None, cache_enabled=True):
        if xm.xla_device_hw(device) == "TPU":
            return as_it_was(self, device, enabled, dtype, cache_enabled)
        return torch.autocast.__init__(self, "xla", enabled=enabled, dtype=dtype or torch.bfloat16, cache_enabled=cache_enabled)
    init.of_weft = True
    autocast.__init__ = init
