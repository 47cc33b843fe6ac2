"""torch.cuda on a device of PyTorch/XLA: what scripts written for "cuda" call, answered for the virtual GPU.

Private parts of PyTorch that are used: `torch._C._nn._parse_to`, by which Module.to reads its arguments.
"""
import collections
import contextlib
import functools
import os
import types

import torch
import torch_xla
import torch_xla.core.xla_model as xm
from torch.overrides import TorchFunctionMode

from weft.torch import streams
from weft.torch.checkpoint import rng_state, set_rng_state


def _is_cuda(value):
    return isinstance(value, torch.device) and value.type == "cuda" or isinstance(value, str) and value.split(":")[0] == "cuda"


def here(value):
    """PyTorch/XLA's device for "cuda"; anything else as it is."""
    return torch_xla.device() if _is_cuda(value) else value


class Device(TorchFunctionMode):
    """While it is entered, torch's functions take "cuda" for the virtual GPU."""

    def __torch_function__(self, fn, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if fn is torch.device:
            return fn(*args, **kwargs)
        if fn is torch.Tensor.cuda:
            return args[0].to(torch_xla.device())
        if fn == torch.Tensor.is_cuda.__get__:  # made anew each time it is named
            return args[0].device.type == "xla"
        if fn is torch.Tensor.pin_memory:
            return args[0]
        return fn(*map(here, args), **{name: here(value) for name, value in kwargs.items()})


def sync(*_):
    """What is open on the device becomes a program and runs."""
    torch_xla.sync(wait=True)


def around_steps(after):
    """Calls `after` when an optimizer has made a step."""
    from torch.optim import optimizer
    optimizer.register_optimizer_step_post_hook(after)


def _memory(name):
    def ask(device=None):
        return xm.get_memory_info(torch_xla.device())[name]
    return ask


def _stats(device=None):
    """torch.cuda.memory_stats: what is known; what only PyTorch's caching allocator has is 0."""
    info = xm.get_memory_info(torch_xla.device())
    out = collections.defaultdict(int, num_alloc_retries=0, num_ooms=0)
    for kind in ("allocated_bytes", "active_bytes", "reserved_bytes", "requested_bytes"):
        out[f"{kind}.all.current"], out[f"{kind}.all.peak"] = info["bytes_used"], info["peak_bytes_used"]
    return out


def _properties(device=None):
    return types.SimpleNamespace(name=os.environ["WEFT_DEVICE"], major=8, minor=0, multi_processor_count=1,
                                 total_memory=_memory("bytes_limit")())


class _One(contextlib.nullcontext):
    """torch.cuda.device: there is one. A type, since PyTorch asks whether something is of it."""

    def __init__(self, device=None):
        super().__init__()
        self.idx = 0


def _seed(seed):
    xm.set_rng_state(int(seed))


def _answers():
    nothing = lambda *args, **kwargs: None  # noqa: E731
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": nothing,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": nothing,
        "get_device_name": lambda device=None: os.environ["WEFT_DEVICE"],
        "get_device_capability": lambda device=None: (8, 0),
        "get_device_properties": _properties,
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_current_stream_capturing": lambda: False,
        "synchronize": sync,
        "empty_cache": nothing,
        "ipc_collect": nothing,
        "reset_peak_memory_stats": nothing,
        "manual_seed": _seed,
        "manual_seed_all": _seed,
        "memory_stats": _stats,
        "memory_allocated": _memory("bytes_used"),
        "memory_reserved": _memory("bytes_used"),
        "max_memory_allocated": _memory("peak_bytes_used"),
        "max_memory_reserved": _memory("peak_bytes_used"),
        "device": _One,
        "get_rng_state": rng_state,
        "get_rng_state_all": lambda: [rng_state()],
        "set_rng_state": set_rng_state,
        "set_rng_state_all": lambda states: set_rng_state(states[0]),
        "mem_get_info": lambda device=None: (_memory("bytes_limit")() - _memory("bytes_used")(), _memory("bytes_limit")()),
    }


def _types():
    """torch.cuda.FloatTensor(...) and its like, as old scripts make tensors."""
    def of(make):
        return lambda *args: make(*args).to(torch_xla.device())
    names = [f"{kind}Tensor" for kind in ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")]
    return {name: of(getattr(torch, name)) for name in names}


def _accelerator():
    """torch.accelerator, whose own functions would open CUDA."""
    nothing = lambda *args, **kwargs: None  # noqa: E731
    return {"is_available": lambda: True, "device_count": lambda: 1, "current_accelerator": lambda check_available=False: torch.device("cuda"),
            "current_device_index": lambda: 0, "current_device_idx": lambda: 0, "set_device_index": nothing, "set_device_idx": nothing,
            "current_stream": lambda device=None: streams.ONE, "set_stream": nothing, "synchronize": sync}


def _loaders():
    """There is no memory to pin: loaders of data leave it."""
    init = torch.utils.data.DataLoader.__init__

    @functools.wraps(init)
    def made(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self.pin_memory = False
    torch.utils.data.DataLoader.__init__ = made


def _data_parallel():
    """Over the one device that there is: the module itself."""
    init = torch.nn.DataParallel.__init__

    @functools.wraps(init)
    def made(self, module, *args, **kwargs):
        init(self, module, *args, **kwargs)
        self.device_ids = []
    torch.nn.DataParallel.__init__ = made


def _ranges():
    nothing = lambda *args, **kwargs: None  # noqa: E731
    for name in ("mark", "range_push", "range_pop", "range_start", "range_end"):
        setattr(torch.cuda.nvtx, name, nothing)


def _autocast():
    class Autocast(torch.autocast):
        def __init__(self, device_type, *args, **kwargs):
            super().__init__("xla" if device_type == "cuda" else device_type, *args, **kwargs)
    torch.autocast = torch.amp.autocast = Autocast


def _shared(module):
    """Names of parameters that are one, as of tied embeddings: [(name, name of the first)]."""
    first, out = {}, []
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if id(parameter) in first:
            out.append((name, first[id(parameter)]))
        first.setdefault(id(parameter), name)
    return out


def _moves_together(to):
    """Module.to that keeps them one, as it does for CUDA; PyTorch/XLA makes two of them."""
    @functools.wraps(to)
    def moved(self, *args, **kwargs):
        shared = _shared(self)
        to(self, *args, **kwargs)
        for name, first in shared:
            owner, _, last = name.rpartition(".")
            self.get_submodule(owner)._parameters[last] = self.get_parameter(first)
        return self
    return moved


def _modules():
    parse = torch._C._nn._parse_to

    def parse_to(*args, **kwargs):
        return parse(*map(here, args), **{name: here(value) for name, value in kwargs.items()})
    torch._C._nn._parse_to = parse_to
    torch.nn.Module.to = _moves_together(torch.nn.Module.to)
    torch.nn.Module.cuda = lambda self, device=None: self.to(torch_xla.device())


def install():
    """Puts the virtual GPU in CUDA's place; the mode returned is to be entered around the script."""
    for module, answers in ((torch.cuda, {**_answers(), **_types(), **streams.answers()}), (torch.accelerator, _accelerator())):
        for name, answer in answers.items():
            setattr(module, name, answer)
    _loaders()
    _data_parallel()
    _ranges()
    torch.cuda.memory.memory_stats = _stats  # for memory_summary
    _autocast()
    _modules()
    return Device()
