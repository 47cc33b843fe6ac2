"""torch.profiler: it records what this machine does; CUDA's own records would be asked of a driver. `weft profile` has the chip's."""
import functools

import torch


def _without_cuda(init):
    @functools.wraps(init)
    def made(self, *args, activities=None, **kwargs):
        kwargs.pop("use_cuda", None)
        init(self, *args, activities=[torch.profiler.ProfilerActivity.CPU], **kwargs)
    return made


def _on_host(init):
    @functools.wraps(init)
    def made(self, *args, use_cuda=None, use_device=None, **kwargs):
        init(self, *args, **kwargs)
    return made


def install():
    torch.profiler.profile.__init__ = _without_cuda(torch.profiler.profile.__init__)
    torch.autograd.profiler.profile.__init__ = _on_host(torch.autograd.profiler.profile.__init__)
