"""Scripts for several GPUs, on the one that there is: torch.distributed with one process, DataParallel, DistributedDataParallel.

A group that is to speak NCCL speaks through PyTorch/XLA's backend. What wraps a module to keep its copies alike is the module.
"""
import contextlib
import functools
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def _one_process(init):
    @functools.wraps(init)
    def one(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, *args, **kwargs):
        world = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", 1))
        if world > 1:
            raise RuntimeError(f"this script is one of {world} processes; weft's virtual GPU is for one: start it alone, or with torchrun "
                               "--nproc_per_node=1 (weft plan asks about many GPUs)")
        import torch_xla.distributed.xla_backend  # noqa: F401  the backend
        kwargs.pop("device_id", None)
        return init("cpu:gloo,xla:xla", init_method, timeout, world_size, rank, *args, **kwargs)
    return one


class _Ddp:
    """Of DistributedDataParallel: what it has for scripts, of one process."""

    def __init__(self, module, *args, **kwargs):
        torch.nn.Module.__init__(self)
        self.module, self.require_backward_grad_sync = module, True

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        yield

    @contextlib.contextmanager
    def join(self, *args, **kwargs):
        yield

    def register_comm_hook(self, state, hook):
        pass

    def train(self, mode=True):
        return torch.nn.Module.train(self, mode)

    def _set_static_graph(self):
        pass


def _data_parallel():
    init = torch.nn.DataParallel.__init__

    @functools.wraps(init)
    def made(self, module, *args, **kwargs):
        init(self, module, *args, **kwargs)
        self.device_ids = []
    torch.nn.DataParallel.__init__ = made


def install():
    _data_parallel()
    if not dist.is_available():
        return
    dist.init_process_group = dist.distributed_c10d.init_process_group = _one_process(dist.init_process_group)
    for name, value in vars(_Ddp).items():
        if callable(value):
            setattr(DistributedDataParallel, name, value)
