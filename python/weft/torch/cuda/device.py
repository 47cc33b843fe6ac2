"""The mode in which torch's functions take "cuda" for the virtual GPU, and tensors on it say that they are on "cuda:0".

Modes are of a thread: in others, PyTorch/XLA's own among them, tensors say "xla".
"""
import re

import torch
import torch_xla
from torch.overrides import TorchFunctionMode

from weft.torch.cuda import differences, storage

CUDA = torch.device("cuda", 0)


def is_cuda(value):
    return isinstance(value, torch.device) and value.type == "cuda" or isinstance(value, str) and value.split(":")[0] == "cuda"


def here(value):
    """PyTorch/XLA's device for "cuda"; anything else as it is."""
    return torch_xla.device() if is_cuda(value) else value


FULL = re.compile(r"needs \S+ [KMGT]?i?B .*over by|does not fit|RESOURCE_EXHAUSTED", re.DOTALL)  # weft's words; PyTorch/XLA keeps no code


def raise_out_of_memory(error):
    """What PyTorch raises for it on CUDA, if it is that: scripts catch it, libraries look for its first words."""
    if FULL.search(str(error)) and not isinstance(error, torch.OutOfMemoryError):
        raise torch.OutOfMemoryError(f"CUDA out of memory. {error}") from error


def sync(*_, **__):
    """What is open on the device becomes a program and runs."""
    try:
        torch_xla.sync(wait=True)
    except (RuntimeError, ValueError) as error:
        raise_out_of_memory(error)
        raise


def _attribute(name):
    """What __torch_function__ is given when a tensor is asked for it; made anew each time it is named, but equal."""
    return getattr(torch.Tensor, name).__get__


def _device_of(tensor):
    return CUDA if tensor.device.type == "xla" else tensor.device


def _type(tensor, dtype=None, *args, **kwargs):
    if isinstance(dtype, type) and hasattr(dtype, "dtype"):  # torch.cuda.FloatTensor
        return tensor.to(torch_xla.device(), dtype.dtype)
    if dtype is None and tensor.device.type == "xla":
        return tensor.type().replace("torch.xla", "torch.cuda")
    return tensor.type(dtype, *args, **kwargs) if dtype is not None else tensor.type()


def _repr(tensor, **kwargs):
    return torch.Tensor.__repr__(tensor, **kwargs).replace("device='xla:", "device='cuda:")


def _cuda(tensor, *args, **kwargs):
    return tensor.to(torch_xla.device())


# of functions that are found by what they are
_ANSWERS = {
    torch.Tensor.cuda: _cuda,
    torch.Tensor.pin_memory: lambda tensor, *args, **kwargs: tensor,
    torch.Tensor.is_pinned: lambda tensor, *args, **kwargs: False,
    torch.Tensor.record_stream: lambda tensor, stream: None,
    torch.Tensor.type: _type,
    torch.Tensor.__repr__: _repr,
    **differences.answers(),
    **storage.answers(),
}


class Device(TorchFunctionMode):
    """While it is entered, torch's functions take "cuda" for the virtual GPU."""

    def __torch_function__(self, fn, types, args=(), kwargs=None):
        try:
            return self.answer(fn, args, kwargs or {})
        except (RuntimeError, ValueError) as error:
            raise_out_of_memory(error)
            raise

    def answer(self, fn, args, kwargs):
        if fn is torch.device:
            return fn(*args, **kwargs)
        if getattr(fn, "__name__", "") == "__get__":
            return self.attribute(fn, args)
        if fn == torch.Tensor.data.__set__:
            return storage.set_data(*args)
        answer = _ANSWERS.get(fn)
        if answer:
            return answer(*args, **kwargs)
        if type(kwargs.get("device")) is int:
            kwargs["device"] = CUDA
        if fn is torch.Tensor.to and len(args) > 1 and type(args[1]) is int:  # the device of that number
            args = (args[0], CUDA, *args[2:])
        return fn(*map(here, args), **{name: here(value) for name, value in kwargs.items()})

    def attribute(self, fn, args):
        if fn == _attribute("device"):
            return _device_of(args[0])
        if fn == _attribute("is_cuda"):
            return args[0].device.type == "xla"
        return fn(*args)
