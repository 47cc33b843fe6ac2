"""The mode in which torch's functions take "cuda" for the virtual GPU, and tensors on it say that they are on "cuda:0".

Modes are of a thread: in others, PyTorch/XLA's own among them, tensors say "xla".
"""
import torch
import torch_xla
from torch.overrides import TorchFunctionMode

from weft.torch.where import on_device

CUDA = torch.device("cuda", 0)


def is_cuda(value):
    return isinstance(value, torch.device) and value.type == "cuda" or isinstance(value, str) and value.split(":")[0] == "cuda"


def here(value):
    """PyTorch/XLA's device for "cuda"; anything else as it is."""
    return torch_xla.device() if is_cuda(value) else value


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


def _batch_norm(x, mean, var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Running variances are of a sample, n - 1; PyTorch/XLA's are not."""
    before = var.data * (1 - momentum) if training and var is not None and on_device(x) else None
    out = torch.nn.functional.batch_norm(x, mean, var, weight, bias, training, momentum, eps)
    if before is not None:
        own = var.data  # autograd has noted the version of `var`
        own.add_(own - before, alpha=1 / (x.numel() // x.shape[1] - 1))
    return out


def _clamped(size, part):
    """A slice that begins or ends further left than its dimension goes, as Python reads it: PyTorch/XLA refuses it."""
    if not isinstance(part, slice) or not all(x is None or isinstance(x, int) for x in (part.start, part.stop, part.step)):
        return part
    return slice(*(None if x is None else max(x, -size) for x in (part.start, part.stop)), part.step)


def _getitem(tensor, index):
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(p, slice) and any(isinstance(x, int) and x < 0 for x in (p.start, p.stop)) for p in parts):
        if not any(isinstance(p, torch.Tensor) or p is Ellipsis or p is None or isinstance(p, (list, bool)) for p in parts):
            index = tuple(map(_clamped, tensor.shape, parts))
        elif parts[0] is Ellipsis and len(parts) == 2:
            index = (..., _clamped(tensor.shape[-1], parts[1]))
    return tensor[index]


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
    torch.Tensor.__getitem__: _getitem,
    torch.nn.functional.batch_norm: _batch_norm,
}


class Device(TorchFunctionMode):
    """While it is entered, torch's functions take "cuda" for the virtual GPU."""

    def __torch_function__(self, fn, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if fn is torch.device:
            return fn(*args, **kwargs)
        if getattr(fn, "__name__", "") == "__get__":
            return self.attribute(fn, args)
        answer = _ANSWERS.get(fn)
        if answer:
            return answer(*args, **kwargs)
        return fn(*map(here, args), **{name: here(value) for name, value in kwargs.items()})

    def attribute(self, fn, args):
        if fn == _attribute("device"):
            return _device_of(args[0])
        if fn == _attribute("is_cuda"):
            return args[0].device.type == "xla"
        return fn(*args)
