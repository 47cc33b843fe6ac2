"""torch.nn.parallel.DistributedDataParallel in replicas, threads of one process (torch_xla.launch) or processes (torchrun): PyTorch's own
ends in threads, and in processes averages nothing on PyTorch/XLA's devices. The mathematics are the same: parameters and buffers begin
as those of replica 0, gradients are averaged as backward makes them, buffers follow replica 0.
"""
import contextlib
import functools

import torch
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr
from torch.nn.parallel import DistributedDataParallel

from weft.torch.where import on_device


class ReplicaDdp(DistributedDataParallel):
    def __init__(self, module, broadcast_buffers=True):
        torch.nn.Module.__init__(self)
        self.module, self.require_backward_grad_sync, self.broadcast_buffers = module, True, broadcast_buffers
        xm.broadcast_master_param(module)
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(self._average)

    def _average(self, parameter):
        if self.require_backward_grad_sync:
            xm.all_reduce(xm.REDUCE_SUM, [parameter.grad], scale=1 / self.replicas)

    @functools.cached_property
    def replicas(self):
        return xr.world_size()

    def forward(self, *args, **kwargs):
        if self.training and self.broadcast_buffers and (buffers := [b for b in self.module.buffers() if b.is_floating_point()]):
            xm.collective_broadcast(buffers)
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        outer, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = outer

    @contextlib.contextmanager
    def join(self, *args, **kwargs):
        yield

    def train(self, mode=True):
        return torch.nn.Module.train(self, mode)


def _in_replicas(init):
    @functools.wraps(init)
    def made(self, module, *args, **kwargs):
        if any(map(on_device, module.parameters())) and xr.world_size() > 1:
            self.__class__ = ReplicaDdp
            ReplicaDdp.__init__(self, module, kwargs.get("broadcast_buffers", True))
        else:
            init(self, module, *args, **kwargs)
    return made


@functools.cache
def prepare():
    DistributedDataParallel.__init__ = _in_replicas(DistributedDataParallel.__init__)
