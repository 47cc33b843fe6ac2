"""What torch.cuda and torch.accelerator answer. A name of torch.cuda that is neither here nor harmless raises a sentence when it is used."""
import collections
import contextlib
import functools
import types

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr

from weft.torch.checkpoint import rng_state, set_rng_state
from weft.torch.cuda import streams
from weft.torch.cuda.device import CUDA, sync


def _nothing(*args, **kwargs):
    pass


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


THREADS = {(7, 5): 1024, (8, 6): 1536, (8, 9): 1536, (12, 0): 1536}  # of a multiprocessor; of others 2048. CUDA C++ Programming Guide


@functools.cache
def _facts():
    """What the plugin says of the device, in the words of XLA's for GPUs: core_count, compute_capability, ..."""
    return xr.global_runtime_device_attributes()[0]


def _capability(device=None):
    """Where no chip has one (a step is captured, one of AMD's): that of an A100."""
    return tuple(int(part) for part in _facts().get("compute_capability", "8.0").split("."))


def _name(device=None):
    return xm.xla_device_kind(torch_xla.device())


def _properties(device=None):
    major, minor = _capability()
    return types.SimpleNamespace(name=_name(), major=major, minor=minor, multi_processor_count=_facts().get("core_count", 1),
                                 total_memory=_memory("bytes_limit")(), is_integrated=False, is_multi_gpu_board=False, warp_size=32,
                                 max_threads_per_multi_processor=THREADS.get((major, minor), 2048), regs_per_multiprocessor=65536,
                                 gcnArchName="", uuid="weft")


class _One(contextlib.nullcontext):
    """torch.cuda.device: there is one. A type, since PyTorch asks whether something is of it."""

    def __init__(self, device=None):
        super().__init__()
        self.idx = 0


def _seed(seed):
    xm.set_rng_state(int(seed))


def _device_answers():
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_initialized": True,  # which torch.utils.checkpoint asks before it keeps the state of random numbers
        "init": _nothing,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": _nothing,
        "device": _One,
        "device_of": lambda tensor: _One(),
        "can_device_access_peer": lambda device, peer: False,
        "get_device_name": _name,
        "get_device_capability": _capability,
        "get_device_properties": _properties,
        "get_arch_list": lambda: ["sm_{}{}".format(*_capability())],
        "get_gencode_flags": lambda: "",
        "is_bf16_supported": lambda including_emulation=True: including_emulation or _capability() >= (8, 0),
        "is_tf32_supported": lambda: _capability() >= (8, 0),
        "is_current_stream_capturing": lambda: False,
        "synchronize": sync,
        "utilization": lambda device=None: 0,
        "set_sync_debug_mode": _nothing,
        "get_sync_debug_mode": lambda: 0,
    }


def _memory_answers():
    used, peak, limit = _memory("bytes_used"), _memory("peak_bytes_used"), _memory("bytes_limit")
    return {
        "memory_stats": _stats,
        "memory_stats_as_nested_dict": _stats,
        "memory_allocated": used,
        "memory_reserved": used,
        "memory_cached": used,
        "device_memory_used": used,
        "max_memory_allocated": peak,
        "max_memory_reserved": peak,
        "max_memory_cached": peak,
        "mem_get_info": lambda device=None: (limit() - used(), limit()),
        "memory_usage": lambda device=None: 100 * used() // limit(),
        "list_gpu_processes": lambda device=None: "",
        "get_allocator_backend": lambda: "native",
        **dict.fromkeys(("empty_cache", "ipc_collect", "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
                         "reset_accumulated_memory_stats", "set_per_process_memory_fraction"), _nothing),
    }


def _random_answers():
    return {
        "manual_seed": _seed,
        "manual_seed_all": _seed,
        "seed": lambda: _seed(torch.seed() >> 1),
        "seed_all": lambda: _seed(torch.seed() >> 1),
        "initial_seed": lambda: int(rng_state()),
        "get_rng_state": rng_state,
        "get_rng_state_all": lambda: [rng_state()],
        "set_rng_state": set_rng_state,
        "set_rng_state_all": lambda states: set_rng_state(states[0]),
    }


def _accelerator_answers():
    """torch.accelerator, whose own functions would open CUDA."""
    memory = {name: answer for name, answer in _memory_answers().items() if hasattr(torch.accelerator, name)}
    return {**memory, "is_available": lambda: True, "device_count": lambda: 1,
            "current_accelerator": lambda check_available=False: torch.device("cuda"),
            "current_device_index": lambda: 0, "current_device_idx": lambda: 0, "set_device_index": _nothing, "set_device_idx": _nothing,
            "current_stream": lambda device=None: streams.ONE, "set_stream": _nothing, "synchronize": sync}


class _Typed(type):
    """torch.cuda.FloatTensor and its like, as old scripts make tensors and ask for their type."""

    def __call__(cls, *args):
        return getattr(torch, cls.__name__)(*args).to(torch_xla.device())

    def __instancecheck__(cls, value):
        return isinstance(value, torch.Tensor) and value.dtype == cls.dtype and value.device == CUDA


def _types():
    kinds = {"Float": torch.float32, "Double": torch.float64, "Half": torch.float16, "BFloat16": torch.bfloat16, "Byte": torch.uint8,
             "Char": torch.int8, "Short": torch.int16, "Int": torch.int32, "Long": torch.int64, "Bool": torch.bool}
    return {f"{kind}Tensor": _Typed(f"{kind}Tensor", (), {"dtype": dtype}) for kind, dtype in kinds.items()}


def _refused(name, value):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"torch.cuda.{name} is not there on weft's virtual GPU, which runs a script's steps as whole programs: "
                                  f"leave it out where WEFT_DEVICE is set")
    return type(name, (), {"__new__": refuse}) if isinstance(value, type) else refuse  # libraries annotate by classes


def _without_an_answer(answered):
    """Functions and classes of torch.cuda that would ask a GPU."""
    fine = {"memory_summary", "memory_snapshot", "CudaError", "DeferredCudaCallError", "OutOfMemoryError", "AcceleratorError", "cudaStatus"}
    for name in torch.cuda.__all__:
        value = getattr(torch.cuda, name, None)
        if callable(value) and name not in answered and name not in fine and not name.endswith("Storage"):
            yield name, value


def install():
    own = {**_device_answers(), **_memory_answers(), **_random_answers(), **_types(), **streams.answers()}
    refused = {name: _refused(name, value) for name, value in _without_an_answer(own)}
    for module, answers in ((torch.cuda, {**own, **refused}), (torch.accelerator, _accelerator_answers())):
        for name, answer in answers.items():
            setattr(module, name, answer)
    for name, answer in {**_memory_answers(), **_random_answers()}.items():  # where they are defined
        for module in (torch.cuda.memory, torch.cuda.random):
            if hasattr(module, name):
                setattr(module, name, answer)
    for name in ("mark", "range_push", "range_pop", "range_start", "range_end"):
        setattr(torch.cuda.nvtx, name, _nothing)
