"""Where a tensor lies, and functions of torch in whose place others are put for those on the device."""
import functools

import torch


def on_device(value):
    """Whether it is a tensor on PyTorch/XLA's device, whatever it says to scripts for "cuda" (cuda/device.py)."""
    if not isinstance(value, torch.Tensor):
        return False
    with torch._C.DisableTorchFunction():
        return value.device.type == "xla"


def replace(owner, name, wrap):
    """Puts wrap(fn) in the place of a function; torch.jit.script still takes it for the operation that it was.

    Private parts of PyTorch that are used: `jit._builtins._find_builtin` and `_register_builtin`.
    """
    fn = getattr(owner, name)
    made = functools.wraps(fn)(wrap(fn))
    setattr(owner, name, made)
    builtins = getattr(torch.jit, "_builtins", None)
    if operation := builtins and builtins._find_builtin(fn):
        builtins._register_builtin(made, operation)
