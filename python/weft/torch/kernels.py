"""Kernels of PyTorch/XLA that compute something else than PyTorch's, or refuse what PyTorch's take: others are put in their place in
PyTorch's dispatcher, where calls from C++ and from autograd find them too. Where PyTorch has a decomposition, it is that.

Parts of PyTorch that are used: `torch.library.get_kernel`, of 2.9, and `torch._decomp.decomposition_table`.
"""
import functools
import math
import os
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
    """Of a complex matrix: theirs turns with a transpose that is not conjugated. Here by the real matrix of its parts. Of any: a word on each
    matrix, where theirs has one on each element, 0 all of them."""
    info = torch.zeros(x.shape[:-2], dtype=torch.int32, device=x.device)
    if not x.is_complex():
        return theirs(x, **kwargs)[0], info
    real, imag, n = x.real, x.imag, x.shape[-1]
    out = theirs(torch.cat([torch.cat([real, -imag], -1), torch.cat([imag, real], -1)], -2), **kwargs)[0]
    return torch.complex(out[..., :n, :n], out[..., n:, :n]), info


def _covariance(theirs, x, *, correction=1, fweights=None, aweights=None):
    """Of complex numbers: by their parts, where theirs is of real numbers."""
    if not x.is_complex() or x.numel() == 0 or fweights is not None or aweights is not None:
        return theirs(x, correction=correction, fweights=fweights, aweights=aweights)
    real, imag = (part - part.mean(1, keepdim=True) for part in (x.real.reshape(-1, x.shape[-1]), x.imag.reshape(-1, x.shape[-1])))
    n = max(0, x.shape[-1] - correction)
    out = torch.complex((real @ real.T + imag @ imag.T) / n, (imag @ real.T - real @ imag.T) / n)
    return out if x.dim() == 2 else out[0, 0]


def _correlation(theirs, x):
    """Of complex numbers: PyTorch clips their parts in place, which are no views here."""
    if not x.is_complex():
        return theirs(x)
    cov = torch.view_as_real(torch.atleast_2d(torch.cov(x)))
    deviation = cov[..., 0].diagonal().sqrt()
    parts = cov / deviation[:, None, None] / deviation[:, None]
    out = torch.view_as_complex(parts.clip(-1, 1))
    return out if x.dim() == 2 else out[0, 0]


def _neutral(reduce, dtype):
    """What changes no value's product, maximum or minimum."""
    if reduce == "prod":
        return 1
    if dtype.is_floating_point:
        return -math.inf if reduce == "amax" else math.inf
    bounds = torch.iinfo(dtype) if dtype != torch.bool else None
    return reduce == "amin" if bounds is None else bounds.min if reduce == "amax" else bounds.max


def _scattered(theirs, x, dim, index, src, reduce, *, include_self=True):
    """On a TPU: theirs compares each index with each place, and takes 0 where they differ whatever is computed. Here what changes nothing. Without
    views: gradients are PyTorch's own."""
    one_by_one = reduce not in ("prod", "amax", "amin") or not include_self or 0 in (x.dim(), index.numel())
    if one_by_one or not os.environ.get("PJRT_DEVICE", "").startswith("TPU"):
        return theirs(x, dim, index, src, reduce, include_self=include_self)
    dim, neutral = dim % x.dim(), _neutral(reduce, x.dtype)
    for d, n in enumerate(index.shape):
        src = torch.slice_copy(src, d, 0, n)
    places = torch.view_copy(torch.arange(x.shape[dim], device=x.device), [-1] + [1] * (x.dim() - dim))
    here = torch.unsqueeze_copy(index, dim) == places
    each = torch.where(here, torch.unsqueeze_copy(src, dim), torch.full((), neutral, dtype=x.dtype, device=x.device))
    found = torch.prod(each, dim + 1, dtype=x.dtype) if reduce == "prod" else getattr(torch, reduce)(each, dim + 1)
    touched = torch.any(each != neutral, dim + 1)  # of nothing but infinities their maximum is the largest number's opposite
    more = [n for d in reversed(range(x.dim())) for n in (0, x.shape[d] - found.shape[d])]
    if any(more):
        found, touched = torch.constant_pad_nd(found, more, neutral), torch.constant_pad_nd(touched, more)
    return torch.where(touched, {"prod": torch.mul, "amax": torch.maximum, "amin": torch.minimum}[reduce](x, found), x)


def _roll(theirs, x, shifts, dims=()):
    """The process ends where there is nothing to roll."""
    return x.clone() if x.numel() == 0 else theirs(x, shifts, dims)


def _each(value, dims):
    """Of a window's numbers, of which one stands for all."""
    value = list(value) if isinstance(value, (tuple, list)) else [value]
    return value * dims if len(value) == 1 else value


def _windows(n, size, step, pad):
    """Along one dimension, where a last one may begin in what is left (ceil_mode): how many, and how far they go past the padding."""
    count = -((size - n - 2 * pad) // step) + 1
    count -= (count - 1) * step >= n + pad
    return count, max(0, (count - 1) * step + size - n - 2 * pad)


def _elements(n, size, step, pad, count, include_pad):
    """Those that each of the windows along one dimension has."""
    low, high = (-pad, n + pad) if include_pad else (0, n)
    return [min(i * step - pad + size, high) - max(i * step - pad, low) for i in range(count)]


def _mean_of_windows(dims):
    """A divisor that is given is not used where padding does not count; where it is used, padding adds nothing. Of windows that go past the padding
    the sums are theirs, and what they are divided by is PyTorch's."""
    def mean(theirs, x, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor=None):
        sizes, pads = _each(kernel_size, dims), _each(padding, dims)
        along = list(zip(x.shape[-dims:], sizes, _each(stride, dims) if stride else sizes, pads))
        windows = [_windows(*one) for one in along] if ceil_mode else []
        if not any(past for _, past in windows):
            return theirs(x, kernel_size, stride, padding, False, count_include_pad or divisor is not None, divisor)
        room = [n for pad, (_, past) in reversed(list(zip(pads, windows))) for n in (pad, pad + past)]
        out = theirs(torch.nn.functional.pad(x, room), kernel_size, stride, 0, False, True, 1)
        if divisor is not None:
            return out / divisor
        for d, (one, (count, _)) in enumerate(zip(along, windows)):
            elements = torch.tensor(_elements(*one, count, count_include_pad), dtype=x.dtype)
            out = out / elements.to(x.device).reshape([-1] + [1] * (dims - 1 - d))
        return out
    return mean


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
    _put("cov", _covariance)
    _put("corrcoef", _correlation)
    _put("scatter_reduce.two", _scattered, "XLA")
    for dims in (2, 3):
        _put(f"avg_pool{dims}d", _mean_of_windows(dims))
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
