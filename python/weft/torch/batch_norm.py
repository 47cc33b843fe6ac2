"""Batch norm keeps variances of a sample, over n - 1, as running ones; PyTorch/XLA keeps those over n."""
import functools

import torch

from weft.torch.where import on_device, replace


def _rescaled(fn):
    """torch.batch_norm, which the forms in torch.nn call."""
    def batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
        inputs = (x, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)
        if not training or running_var is None or torch.compiler.is_compiling() or not on_device(x):
            return fn(*inputs)
        before = running_var.data * (1 - momentum)
        out = fn(*inputs)
        own = running_var.data  # autograd has noted the version of running_var
        own.add_(own - before, alpha=1 / max(x.numel() // x.shape[1] - 1, 1))
        return out
    return batch_norm


@functools.cache
def prepare():
    replace(torch, "batch_norm", _rescaled)
