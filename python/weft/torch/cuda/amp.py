"""Automatic mixed precision: torch.autocast("cuda"), torch.cuda.amp.autocast and what they are asked, on PyTorch/XLA's device.

Its default is CUDA's, float16.
"""
import functools

import torch

_ASKED = ("is_autocast_enabled", "get_autocast_dtype", "set_autocast_enabled", "set_autocast_dtype")


def _on_xla(fn):
    """A function of torch's whose first argument may be the type of a device; without one it means CUDA."""
    @functools.wraps(fn)
    def asked(*args):
        if not args or not isinstance(args[0], str):
            args = ("xla", *args)
        return fn("xla" if args[0] == "cuda" else args[0], *args[1:])
    return asked


def install():
    init = torch.autocast.__init__

    @functools.wraps(init)
    def started(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if device_type == "cuda":
            device_type, dtype = "xla", dtype or torch.float16
        init(self, device_type, dtype, enabled, cache_enabled)
    torch.autocast.__init__ = started
    for name in _ASKED:
        setattr(torch, name, _on_xla(getattr(torch, name)))
    torch.get_autocast_gpu_dtype = lambda: torch.get_autocast_dtype("xla")
    torch.set_autocast_gpu_dtype = lambda dtype: torch.set_autocast_dtype("xla", dtype)
    torch.set_autocast_dtype("xla", torch.float16)
