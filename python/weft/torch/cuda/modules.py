"""Modules and functions that PyTorch/XLA does in a way of its own, as they are for CUDA.

Private parts of PyTorch that are used: `torch._C._nn._parse_to`, by which Module.to reads its arguments.
"""
import functools

import torch
import torch_xla

from weft.torch.cuda.device import here


def _shared(module):
    """Names of parameters that are one, as of tied embeddings: [(name, name of the first)]."""
    first, out = {}, []
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if id(parameter) in first:
            out.append((name, first[id(parameter)]))
        first.setdefault(id(parameter), name)
    return out


def _moves_together(to):
    """Module.to that keeps them one; PyTorch/XLA makes two of them."""
    @functools.wraps(to)
    def moved(self, *args, **kwargs):
        shared = _shared(self)
        to(self, *args, **kwargs)
        for name, first in shared:
            owner, _, last = name.rpartition(".")
            self.get_submodule(owner)._parameters[last] = self.get_parameter(first)
        return self
    return moved


def _loaders():
    """There is no memory to pin: loaders of data leave it."""
    init = torch.utils.data.DataLoader.__init__

    @functools.wraps(init)
    def made(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self.pin_memory = False
    torch.utils.data.DataLoader.__init__ = made


def install():
    parse = torch._C._nn._parse_to

    def parse_to(*args, **kwargs):
        return parse(*map(here, args), **{name: here(value) for name, value in kwargs.items()})
    torch._C._nn._parse_to = parse_to
    torch.nn.Module.to = _moves_together(torch.nn.Module.to)
    torch.nn.Module.cuda = lambda self, device=None: self.to(torch_xla.device())
    _loaders()
