"""torch.save and torch.load: files hold tensors of the CPU, which any PyTorch can read; map_location may name the virtual GPU.

Private parts of PyTorch that are used: `Tensor._reduce_ex_internal`, by which tensors are pickled.
"""
import functools

import torch
from torch.utils import _pytree

from weft.torch.cuda.device import here, is_cuda
from weft.torch.where import on_device


def _as_of_cpu(reduce):
    @functools.wraps(reduce)
    def reduced(self, proto):
        return reduce(self.detach().cpu().requires_grad_(self.requires_grad) if on_device(self) else self, proto)
    return reduced


def _read(load):
    @functools.wraps(load)
    def loaded(f, map_location=None, *args, **kwargs):
        to = map_location.get("cuda:0") if isinstance(map_location, dict) else map_location
        if not is_cuda(to):
            return load(f, map_location, *args, **kwargs)
        device = here(to)
        return _pytree.tree_map_only(torch.Tensor, lambda t: t.to(device), load(f, "cpu", *args, **kwargs))
    return loaded


def install():
    torch.Tensor._reduce_ex_internal = _as_of_cpu(torch.Tensor._reduce_ex_internal)
    torch.load = _read(torch.load)
