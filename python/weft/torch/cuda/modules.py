"""Modules and functions that PyTorch/XLA does in a way of its own, as they are for CUDA.

Private parts of PyTorch that are used: `torch._C._nn._parse_to`, by which Module.to reads its arguments; of torch_xla: `_orig` of what
it has replaced.
"""
import functools

import torch
import torch_xla

from weft.torch.cuda.device import here


def _keeps_parameters(apply):
    """Module._apply, by which modules are moved, that leaves parameters the objects that they are, as on CUDA: optimizers that were made
    before hold them, tied ones stay one. PyTorch/XLA makes new ones."""
    @functools.wraps(apply)
    def applied(self, *args, **kwargs):
        outer = torch.__future__.get_swap_module_params_on_conversion()
        torch.__future__.set_swap_module_params_on_conversion(True)
        try:
            return apply(self, *args, **kwargs)
        except RuntimeError as error:
            if "Couldn't swap" not in str(error):
                raise
            torch.__future__.set_swap_module_params_on_conversion(False)  # something else holds what is in them
            return apply(self, *args, **kwargs)
        finally:
            torch.__future__.set_swap_module_params_on_conversion(outer)
    return applied


def _loaders():
    """There is no memory to pin: loaders of data leave it."""
    init = torch.utils.data.DataLoader.__init__

    @functools.wraps(init)
    def made(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self.pin_memory = False
    torch.utils.data.DataLoader.__init__ = made


def _without_foreach(clip):
    """Of torch.nn.utils: clips all gradients at once where that is asked for; as one program they are in any case."""
    @functools.wraps(clip)
    def clipped(parameters, *args, foreach=None, **kwargs):
        return clip(parameters, *args, **kwargs)
    return clipped


def _as_pytorch_has_them():
    """PyTorch/XLA puts forms of its own in the place of a few; its GRU is a scan, whose tracing opens CUDA."""
    torch.nn.GRU = getattr(torch.nn.GRU, "_orig", torch.nn.GRU)
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        clip = getattr(torch.nn.utils, name)
        clip = _without_foreach(getattr(clip, "_orig", clip))
        setattr(torch.nn.utils, name, clip)
        setattr(torch.nn.utils.clip_grad, name, clip)


def install():
    _as_pytorch_has_them()
    parse = torch._C._nn._parse_to

    def parse_to(*args, **kwargs):
        args = ["cuda" if type(x) is int else x for x in args]  # a device by its number
        return parse(*map(here, args), **{name: here(value) for name, value in kwargs.items()})
    torch._C._nn._parse_to = parse_to
    torch.nn.Module._apply = _keeps_parameters(torch.nn.Module._apply)
    torch.nn.Module.cuda = lambda self, device=None: self.to(torch_xla.device())
    torch.nn.RNNBase.flatten_parameters = lambda self: None  # how cuDNN wants them to lie
    _loaders()
