"""Complex numbers on PyTorch/XLA's devices as PyTorch computes them. torch_xla 2.9 says that their moduli are complex, forgets the
conjugates in gradients of einsum, ends the process in istft and refuses norms and means.
"""
import functools

import torch

from weft.torch.where import on_device, replace


def _complex(x):
    return isinstance(x, torch.Tensor) and x.is_complex() and not torch.compiler.is_compiling() and on_device(x)


class _Modulus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return torch.hypot(z.real, z.imag)

    @staticmethod
    def backward(ctx, grad):
        z, = ctx.saved_tensors
        return grad * z.sgn()


def _real_first(fn):
    """fn of a tensor's moduli, where it is complex."""
    def answer(x, *args, **kwargs):
        return fn(_Modulus.apply(x) if _complex(x) else x, *args, **kwargs)
    return answer


def _norm(fn):
    """linalg.norm, which of matrices may be of singular values."""
    def answer(x, *args, **kwargs):
        return fn(_Modulus.apply(x) if _complex(x) and not args and kwargs.get("ord") is None else x, *args, **kwargs)
    return answer


def _abs(fn):
    def answer(x, **kwargs):
        return _Modulus.apply(x) if _complex(x) and not kwargs else fn(x, **kwargs)
    return answer


def _mean(fn):
    def answer(x, *args, **kwargs):
        if not _complex(x):
            return fn(x, *args, **kwargs)
        out = x.sum(*args, **kwargs)
        return out * (out.numel() / x.numel())
    return answer


def _any_part(fn):
    """isnan and its like."""
    def answer(x, **kwargs):
        return fn(torch.view_as_real(x)).any(-1) if _complex(x) else fn(x, **kwargs)
    return answer


def _sum_of_frames(frames, hop):
    """[batch, frames, size] laid one over the other, each `hop` after the one before: [batch, time]."""
    batch, n, size = frames.shape
    return torch.ops.aten.unfold_backward(frames.contiguous(), [batch, size + hop * (n - 1)], 1, size, hop)


_pytorchs_istft = torch.istft


def _istft(z, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None,
           return_complex=False):
    if not _complex(z):
        return _pytorchs_istft(z, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex)
    size, hop = win_length or n_fft, hop_length or n_fft // 4
    window = torch.ones(size, device=z.device) if window is None else window
    left = (n_fft - size) // 2
    window = torch.nn.functional.pad(window, (left, n_fft - size - left))
    spectra = (z if z.dim() == 3 else z[None]).transpose(1, 2)
    if z.shape[-2] == n_fft and n_fft > 2 or onesided is False:
        frames = torch.fft.ifft(spectra, norm="ortho" if normalized else None)
        frames = frames if return_complex else frames.real
    else:
        frames = torch.fft.irfft(spectra, n=n_fft, norm="ortho" if normalized else None)
    signal = _sum_of_frames(frames * window, hop)
    weight = _sum_of_frames((window * window).expand(1, frames.shape[1], n_fft), hop)
    begin = n_fft // 2 if center else 0
    end = begin + length if length is not None else signal.shape[1] - begin
    out = signal[:, begin:end] / weight[:, begin:end]
    if length is not None:
        out = torch.nn.functional.pad(out, (0, length - out.shape[1]))
    return out if z.dim() == 3 else out[0]


def _einsum(fn):
    """Of one or two complex operands by their parts."""
    @functools.wraps(fn)
    def answer(equation, *operands):
        operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
        if not any(map(_complex, operands)) or len(operands) > 2:
            return fn(equation, *operands)
        parts = [(x.real, x.imag) if x.is_complex() else (x, None) for x in operands]
        if len(parts) == 1:
            return torch.complex(*(fn(equation, part) for part in parts[0]))
        (a, b), (c, d) = parts
        if b is None or d is None:
            return torch.complex(fn(equation, a, c), fn(equation, *((a, d) if b is None else (b, c))))
        return torch.complex(fn(equation, a, c) - fn(equation, b, d), fn(equation, a, d) + fn(equation, b, c))
    return answer


@functools.cache
def prepare():
    of_tensors, linalg = torch.Tensor, torch.linalg
    for wrap, functions in ((_abs, ((torch, "abs"), (torch, "absolute"), (of_tensors, "abs"), (of_tensors, "absolute"), (of_tensors, "__abs__"))),
                            (_norm, ((linalg, "norm"),)),
                            (_real_first, ((linalg, "vector_norm"), (torch, "norm"), (of_tensors, "norm"))),
                            (_mean, ((torch, "mean"), (of_tensors, "mean"))),
                            (_any_part, ((torch, "isnan"), (torch, "isinf"), (of_tensors, "isnan"), (of_tensors, "isinf"))),
                            (_einsum, ((torch, "einsum"), (torch.functional, "einsum"))),
                            (lambda fn: _istft, ((torch, "istft"), (of_tensors, "istft")))):
        for owner, name in functions:
            replace(owner, name, wrap)
