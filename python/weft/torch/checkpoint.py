"""torch.utils.checkpoint on PyTorch/XLA's devices, which torch_xla 2.9 has only a form of its own of. PyTorch's asks for the module
`torch.xla`: there is one then, with the states of random numbers. What is computed again begins behind an optimization barrier, or a
compiler would take it for what was computed before, and keep that.

Private parts of PyTorch that are used: `utils.checkpoint.detach_variable` and `_checkpoint_without_reentrant_generator`, whose first
argument is the function that is run again.
"""
import contextlib
import functools
import types

import torch
import torch.utils.checkpoint
import torch_xla.core.xla_model as xm

from weft.torch.where import on_device


def _behind_barrier(tensors):
    there = [t for t in tensors if on_device(t)]
    if there:
        xm.optimization_barrier_(there)


def _detached(value):
    """A tensor's own copy in the graph, for a barrier to replace; anything else as it is."""
    if not on_device(value):
        return value
    return value.detach().requires_grad_(value.requires_grad)


def _run_again(fn):
    @functools.wraps(fn)
    def again(*args, **kwargs):
        args, kwargs = [_detached(x) for x in args], {name: _detached(x) for name, x in kwargs.items()}
        _behind_barrier([*args, *kwargs.values()])
        return fn(*args, **kwargs)
    return again


def _generator(made):
    @functools.wraps(made)
    def generator(fn, *args, **kwargs):
        return made(_run_again(fn), *args, **kwargs)
    return generator


def _then_barrier(detach):
    @functools.wraps(detach)
    def detached(inputs):
        out = detach(inputs)
        _behind_barrier(out)
        return out
    return detached


def rng_state(device=None):
    """Of the device's random numbers, as a tensor."""
    return torch.tensor(xm.get_rng_state(), dtype=torch.uint64, device="cpu")


def set_rng_state(state, device=None):
    xm.set_rng_state(state.numpy().item() if isinstance(state, torch.Tensor) else int(state))


def _module():
    """What PyTorch asks a device's module for."""
    module = types.ModuleType("torch.xla")
    module._initialized = True
    module.is_available = lambda: True
    module.is_initialized = lambda: True
    module.device_count = lambda: 1
    module.current_device = lambda: 0
    module.set_device = lambda device: None
    module.synchronize = lambda device=None: xm.wait_device_ops()
    module.device = lambda device: contextlib.nullcontext()
    module.get_rng_state = rng_state
    module.set_rng_state = set_rng_state
    return module


@functools.cache
def prepare():
    if not hasattr(torch, "xla"):
        torch._register_device_module("xla", _module())
    inner = torch.utils.checkpoint
    for name, around in (("detach_variable", _then_barrier), ("_checkpoint_without_reentrant_generator", _generator)):
        if hasattr(inner, name):
            setattr(inner, name, around(getattr(inner, name)))
