"""Kernels of PyTorch/XLA that compute something else than PyTorch's, or refuse what PyTorch's take: others are put in their place in
PyTorch's dispatcher, where calls from C++ and from autograd find them too. Where PyTorch has a decomposition, it is that.

Parts of PyTorch that are used: `torch.library.get_kernel`, of 2.9, and `torch._decomp.decomposition_table`.
"""
import functools
import math
import warnings

import torch

from weft.torch.where import on_device, replace

aten = torch.ops.aten
_library = torch.library.Library("aten", "IMPL")  # what it has put in place is there while it is
_KEY = "AutogradXLA"  # above functionalization, without which views of PyTorch/XLA's are not what they say; gradients are those of what is called


def _put(name, kernel, key=_KEY):
    """kernel(theirs, *arguments): what operation `name` ("clamp.Tensor") is; theirs(*arguments) is what it was."""
    before = torch.library.get_kernel(f"aten::{name}", key)

    def call(keys, *args, **kwargs):
        return kernel(functools.partial(before.call_boxed, keys), *args, **kwargs)
    _library.impl(name, call, key, with_keyset=True, allow_override=True)


def _decomposition(name):
    packet, _, overload = name.partition(".")
    return torch._decomp.decomposition_table[getattr(getattr(aten, packet), overload or "default")]


def _norm(x, p=2, dim=(), keepdim=False, dtype=None):
    """Those of order infinity are 1."""
    return torch.linalg.vector_norm(x, 2 if p is None else p, list(dim) or None, keepdim, dtype=dtype)


def _count_nonzero(x, dim=None):
    """Theirs is of the type of what is counted."""
    return (x != 0).sum() if dim in (None, [], ()) else (x != 0).sum(dim)


def _clamp(theirs, x, *bounds):
    """Bounds that are tensors of more dimensions, or of fewer, than what is clamped are refused."""
    there = torch.broadcast_tensors(x, *(b for b in bounds if b is not None))
    given = iter(there[1:])
    return theirs(there[0], *(None if b is None else next(given) for b in bounds))


def _svd(theirs, x, full_matrices=False, compute_uv=True, **kwargs):
    """Of several matrices the results are said to have the shapes of those of one. Without views: it is called below functionalization."""
    if x.dim() == 2 or x.numel() == 0:
        return theirs(x, full_matrices, compute_uv, **kwargs)
    matrices = torch.unbind_copy(torch.view_copy(x, (-1, *x.shape[-2:])))
    parts = map(torch.stack, zip(*(theirs(one, full_matrices, compute_uv, **kwargs) for one in matrices)))
    return tuple(torch.view_copy(part, (*x.shape[:-2], *part.shape[1:])) for part in parts)


def _inverse(theirs, x, **kwargs):
    """Of a complex matrix: theirs turns with a transpose that is not conjugated. Here by the real matrix of its parts."""
    if not x.is_complex():
        return theirs(x, **kwargs)
    real, imag, n = x.real, x.imag, x.shape[-1]
    out, info = theirs(torch.cat([torch.cat([real, -imag], -1), torch.cat([imag, real], -1)], -2), **kwargs)
    return torch.complex(out[..., :n, :n], out[..., n:, :n]), info


def _roll(theirs, x, shifts, dims=()):
    """The process ends where there is nothing to roll."""
    return x.clone() if x.numel() == 0 else theirs(x, shifts, dims)


def _mean_of_windows(theirs, x, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor=None):
    """A divisor that is given is not used where padding does not count; where it is used, padding adds nothing."""
    return theirs(x, kernel_size, stride, padding, ceil_mode, count_include_pad or divisor is not None, divisor)


def _mean_of_windows_gradient(theirs, *args):
    *most, count_include_pad, divisor = args
    return theirs(*most, count_include_pad or divisor is not None, divisor)


def _pooled_gradient(dims):
    """Of the largest values in windows whose elements lie apart (dilation): by their numbers. Theirs takes elements side by side."""
    def backward(theirs, grad, x, kernel_size, stride, padding, dilation, ceil_mode, indices):
        if all(d == 1 for d in dilation):
            return theirs(grad, x, kernel_size, stride, padding, dilation, ceil_mode, indices)
        begin = x.dim() - dims
        flat = torch.zeros_like(x).flatten(begin).scatter_add(begin, indices.flatten(begin), grad.flatten(begin))
        return flat.view(x.shape)
    return backward


def _pooled(dims):
    """Theirs has a gradient of its own, which takes elements side by side."""
    with_numbers = (aten.max_pool2d_with_indices, aten.max_pool3d_with_indices)[dims - 2]

    def pool(theirs, x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        if all(d == 1 for d in (dilation if isinstance(dilation, (tuple, list)) else [dilation])):
            return theirs(x, kernel_size, stride, padding, dilation, ceil_mode)
        return with_numbers(x, kernel_size, stride, padding, dilation, ceil_mode)[0]
    return pool


def _batch_norm_gradient(theirs, grad, x, weight, mean, var, save_mean, save_invstd, train, eps, wanted):
    """Of one that uses its running numbers (a frozen one, in eval): theirs is refused."""
    form = theirs if train else _decomposition("native_batch_norm_backward")
    return form(grad, x, weight, mean, var, save_mean, save_invstd, train, eps, wanted)


def _histc(x, bins=100, min=0, max=0):
    """On the device; of integers too, as CUDA has it."""
    if min == max:
        low, high = x.min().float(), x.max().float()
        low, high = torch.where(low == high, low - 1, low), torch.where(low == high, high + 1, high)
    else:
        low, high = min, max
    x = x.flatten()
    wide = x if x.is_floating_point() else x.double()
    place = ((wide - low) * (bins / (high - low))).floor().clamp(max=bins - 1)
    inside = (wide >= low) & (wide <= high)
    counts = torch.zeros(bins + 1, dtype=x.dtype, device=x.device)
    return counts.scatter_add(0, torch.where(inside, place, bins).long(), torch.ones_like(x))[:bins]


# ---- operations that the dispatcher has no name for ----


def _exact(size, scale):
    return math.floor(size * scale) == size * scale


def _interpolate(fn):
    """Sizes that are no multiple: PyTorch goes on by the scale that was given, PyTorch/XLA by the quotient of the sizes."""
    resize = {"nearest": torch._decomp.decompositions.upsample_nearest2d, "bilinear": torch._decomp.decompositions.upsample_bilinear2d}

    @functools.wraps(fn)
    def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
        given = input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
        if scale_factor is None or recompute_scale_factor or mode not in resize or input.dim() != 4 or antialias or not on_device(input):
            return fn(*given)
        scales = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * 2
        sizes = input.shape[-2:]
        if all(map(_exact, sizes, scales)):
            return fn(*given)
        to = [math.floor(n * s) for n, s in zip(sizes, scales)]
        more = () if mode == "nearest" else (bool(align_corners),)
        return resize[mode](input, to, *more, *scales)
    return interpolate


def _kernels():
    whole = {"elu_backward": _decomposition("elu_backward"),  # theirs takes inputs for results; selu and celu are elu's
             "count_nonzero": _count_nonzero, "count_nonzero.dim_IntList": _count_nonzero, "histc": _histc,
             **{f"norm.{form}": _norm for form in ("Scalar", "ScalarOpt_dim", "ScalarOpt_dtype", "ScalarOpt_dim_dtype")}}
    for name, kernel in whole.items():
        _library.impl(name, kernel, _KEY, allow_override=True)
    _put("native_batch_norm_backward", _batch_norm_gradient)
    for name in ("clamp.Tensor", "clamp_min.Tensor", "clamp_max.Tensor"):
        _put(name, _clamp)
    _put("_linalg_svd", _svd, "XLA")  # pinv asks there
    _put("linalg_inv_ex", _inverse)
    _put("roll", _roll)
    for dims in (2, 3):
        _put(f"avg_pool{dims}d", _mean_of_windows)
        _put(f"avg_pool{dims}d_backward", _mean_of_windows_gradient)
        _put(f"max_pool{dims}d", _pooled(dims))
        _put(f"max_pool{dims}d_with_indices_backward", _pooled_gradient(dims))


@functools.cache
def prepare():
    if not hasattr(torch.library, "get_kernel"):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of kernels that are replaced
        _kernels()
    replace(torch.nn.functional, "interpolate", _interpolate)
