"""Optimizers that are asked for PyTorch's fused kernels (fused=True, the default of the Trainer of transformers): PyTorch has none for
PyTorch/XLA and refuses. There the whole step is one program anyway, so the plain form is taken."""
import functools

import torch
from torch.optim import optimizer

from weft.torch.where import on_device


def _plain(made, *_):
    """Takes the plain form for parameters on PyTorch/XLA's devices."""
    for group in made.param_groups:
        if group.get("fused") and any(map(on_device, group["params"])):
            group["fused"] = False
            made._step_supports_amp_scaling = False  # scales of gradients are undone before the step, not by it


def _then_plain(init):
    @functools.wraps(init)
    def made(self, *args, **kwargs):
        init(self, *args, **kwargs)
        _plain(self)
    return made


@functools.cache
def prepare():
    for name in ("Adam", "AdamW", "SGD", "Adagrad"):
        cls = getattr(torch.optim, name)
        cls.__init__ = _then_plain(cls.__init__)
    optimizer.register_optimizer_step_pre_hook(_plain)  # groups that were added or loaded since
