"""Batch norm keeps variances of a sample, over n - 1, as running ones; PyTorch/XLA keeps those over n. It refuses a weight without a bias."""
import functools

import torch

from weft.torch.where import on_device, replace


def _rescaled(numbers):
    """numbers(x): of how many each mean and variance is."""
    def wrap(fn):
        def norm(x, weight, bias, running_mean, running_var, training, *more):
            there = not torch.compiler.is_compiling() and on_device(x)
            if there and weight is not None and bias is None:
                bias = torch.zeros_like(weight)
            inputs = (x, weight, bias, running_mean, running_var, training, *more)
            if not training or running_var is None or not there:
                return fn(*inputs)
            before = running_var.data * (1 - more[0])  # more[0]: momentum
            out = fn(*inputs)
            own = running_var.data  # autograd has noted the version of running_var
            own.add_(own - before, alpha=1 / max(numbers(x) - 1, 1))
            return out
        return norm
    return wrap


@functools.cache
def prepare():
    """torch.batch_norm and torch.instance_norm, which the forms in torch.nn call."""
    replace(torch, "batch_norm", _rescaled(lambda x: x.numel() // x.shape[min(1, x.dim() - 1)]))
    replace(torch, "instance_norm", _rescaled(lambda x: x[0, 0].numel()))
