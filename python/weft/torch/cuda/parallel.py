"""Scripts for several GPUs, on the one that there is: torch.distributed with one process, DataParallel, DistributedDataParallel.

A group that is to speak NCCL speaks through PyTorch/XLA's backend. What wraps a module to keep its copies alike, or to share out its
parameters (FullyShardedDataParallel, fully_shard), is the module, in the precision that it asks for.
"""
import contextlib
import functools
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


@functools.cache
def _backend():
    """PyTorch/XLA's, whose functions are to see that tensors lie on its device."""
    from torch_xla.distributed import xla_backend
    for name, fn in list(vars(xla_backend.ProcessGroupXla).items()):
        if callable(fn) and not name.startswith("__"):
            setattr(xla_backend.ProcessGroupXla, name, _without_mode(fn))


def _without_mode(fn):
    @functools.wraps(fn)
    def call(*args, **kwargs):
        with torch._C.DisableTorchFunction():
            return fn(*args, **kwargs)
    return call


def _to_first(out, value, *args, **kwargs):
    out[0] = value


def _objects():
    """Of one process, collectives of Python's objects."""
    own = {"broadcast_object_list": lambda objects, *args, **kwargs: None, "all_gather_object": _to_first,
           "gather_object": lambda value, out=None, *args, **kwargs: out is None or _to_first(out, value),
           "scatter_object_list": lambda out, objects, *args, **kwargs: _to_first(out, objects[0])}
    for name, fn in own.items():
        setattr(dist, name, fn)
        setattr(dist.distributed_c10d, name, fn)


def _one_process(init):
    @functools.wraps(init)
    def one(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, *args, **kwargs):
        world = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", 1))
        if world > 1:
            raise RuntimeError(f"this script is one of {world} processes; weft's virtual GPU is for one: start it alone, or with torchrun "
                               "--nproc_per_node=1 (weft plan asks about many GPUs)")
        _backend()
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


# ---- fully sharded ----


def _in(dtype, value):
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _in_precision(module, forward, policy):
    """A forward pass of the module with its parameters and what it is given in the policy's type, as MixedPrecision has it."""
    dtype = getattr(policy, "param_dtype", None)
    if dtype is None:
        return forward

    @functools.wraps(forward)
    def cast(*args, **kwargs):
        args, kwargs = [_in(dtype, x) for x in args], {name: _in(dtype, x) for name, x in kwargs.items()}
        weights = {name: _in(dtype, p) for name, p in module.named_parameters()}
        with torch.nn.utils.stateless._reparametrize_module(module, weights):
            return forward(*args, **kwargs)
    return cast


class _Fsdp(_Ddp):
    """Of FullyShardedDataParallel, of one process."""

    def __init__(self, module, *args, mixed_precision=None, device_id=None, **kwargs):
        torch.nn.Module.__init__(self)
        self._fsdp_wrapped_module = module.to("cuda")
        object.__setattr__(self, "_run", _in_precision(module, module.forward, mixed_precision))

    def forward(self, *args, **kwargs):
        return self._run(*args, **kwargs)

    def clip_grad_norm_(self, max_norm, norm_type=2.0):
        return torch.nn.utils.clip_grad_norm_(self.parameters(), max_norm, norm_type)

    def named_parameters(self, *args, **kwargs):
        for name, parameter in torch.nn.Module.named_parameters(self, *args, **kwargs):
            yield name.replace("_fsdp_wrapped_module.", ""), parameter

    def state_dict(self, *args, **kwargs):
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, state, *args, **kwargs):
        return self.module.load_state_dict(state, *args, **kwargs)


def _whole(*args, **kwargs):
    """Contexts about how state is given: there is but one way."""
    return contextlib.nullcontext()


_OF_CLASS = {"state_dict_type": _whole, "summon_full_params": _whole, "set_state_dict_type": lambda *args, **kwargs: None,
             "optim_state_dict": lambda model, optim, *args, **kwargs: optim.state_dict(),
             "optim_state_dict_to_load": lambda model, optim, state, *args, **kwargs: state}


def _fully_shard(module, *, mp_policy=None, **kwargs):
    """torch.distributed.fsdp.fully_shard: the modules stay, with what the sharded ones have."""
    for one in module if isinstance(module, (list, tuple)) else [module]:
        one.forward = _in_precision(one, one.forward, mp_policy)
        for name in ("set_requires_gradient_sync", "set_is_last_backward", "set_reshard_after_backward", "set_modules_to_forward_prefetch",
                     "set_modules_to_backward_prefetch", "set_requires_all_reduce", "unshard", "reshard"):
            setattr(one, name, lambda *args, **kwargs: None)
    return module


def _fully_sharded():
    from torch.distributed import fsdp
    for name, value in {**vars(_Ddp), **vars(_Fsdp)}.items():
        if callable(value):
            setattr(fsdp.FullyShardedDataParallel, name, value)
    fsdp.FullyShardedDataParallel.module = property(lambda self: self._fsdp_wrapped_module)
    for name, value in _OF_CLASS.items():
        setattr(fsdp.FullyShardedDataParallel, name, staticmethod(value))
    fsdp.fully_shard = _fully_shard
    import torch.distributed._composable.fsdp as older
    older.fully_shard = _fully_shard


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
    _objects()
    _fully_sharded()
