"""Replicas in one process: torch_xla.launch and xmp.spawn run a thread for each device.

On a TPU each has a process of its own, and with it its own random numbers. Here each thread has its own state of what is otherwise one
for the whole process: PyTorch's CPU generator, Python's `random`, numpy's `numpy.random`. So torch.manual_seed(0) in each replica gives
each the same weights, whatever the others do meanwhile. Threads that a replica starts (loaders of data) share its states.

A process would also have objects of its own: each thread is given copies of what the replicas are started with (a model, a trainer), and
sees one device, its own. What cannot be copied is shared, and so are arrays and data sets, which replicas read.

Private parts of torch_xla that are used: `_internal.pjrt._run_thread_per_device` and `_SpawnFn`.
"""
import copy
import functools
import os
import random
import threading
import traceback
import warnings

import torch

from weft.torch import groups


class _Own(threading.local):
    """Of a replica's threads: the states that they go on from, one list; None in other threads."""
    states = None
    inside = False


_own = _Own()
_lock = threading.RLock()
_sources = []  # (get, set) of each state of the process


def _own_states(fn):
    """fn, which draws random numbers or sets their state, on the thread's own states."""
    @functools.wraps(fn)
    def call(*args, **kwargs):
        states = _own.states
        if _own.inside:
            return fn(*args, **kwargs)
        with _lock:
            if states is None:  # not while another thread has put its own in place
                return fn(*args, **kwargs)
            outer = [get() for get, _ in _sources]
            for (_, put), state in zip(_sources, states):
                put(state)
            _own.inside = True
            try:
                return fn(*args, **kwargs)
            finally:
                _own.inside = False
                states[:] = [get() for get, _ in _sources]
                for (_, put), state in zip(_sources, outer):
                    put(state)
    return call


TORCH = ("manual_seed seed initial_seed get_rng_state set_rng_state rand randn randint randperm rand_like randn_like randint_like normal "
         "bernoulli multinomial poisson").split()
FUNCTIONAL = "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout rrelu".split()
TENSOR = "uniform_ normal_ random_ bernoulli_ bernoulli exponential_ geometric_ cauchy_ log_normal_ multinomial".split()


def _replace(owner, names):
    for name in names:
        if callable(fn := getattr(owner, name, None)):
            setattr(owner, name, _own_states(fn))


def _shared_with_its_threads(start):
    """threading.Thread.start: a thread of a replica's has the replica's states."""
    @functools.wraps(start)
    def started(self):
        if (states := _own.states) is not None:
            run = self.run

            def run_with_states():
                _own.states = states
                run()
            self.run = run_with_states
        return start(self)
    return started


@functools.cache
def _install():
    threading.Thread.start = _shared_with_its_threads(threading.Thread.start)
    generator = torch.default_generator
    _sources.append((generator.get_state, generator.set_state))
    _sources.append((random.getstate, random.setstate))
    bound = [n for n in dir(random) if getattr(getattr(random, n), "__self__", None) is random.getstate.__self__]
    try:
        import numpy
        _sources.append((numpy.random.get_state, numpy.random.set_state))
        hidden = numpy.random.get_state.__self__
        _replace(numpy.random, ["seed"] + [n for n in dir(numpy.random) if getattr(getattr(numpy.random, n), "__self__", None) is hidden])
    except (ImportError, AttributeError):
        pass
    _replace(random, bound)
    _replace(torch, TORCH)
    for name in ("manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state"):
        setattr(torch.random, name, getattr(torch, name))
    _replace(torch.nn.functional, FUNCTIONAL)
    _replace(torch.Tensor, TENSOR)


# ---- objects of a replica's own ----


def _copied(value, memo):
    """A copy for one replica; memo: what is copied with it. What can only be shared is."""
    if isinstance(value, torch.utils.data.Dataset) or type(value) is torch.Tensor or type(value).__module__ == "numpy":
        return value
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # locks, queues, files: each class refuses in its own way
        return value


def _copies(call):
    """What torch_xla calls in each thread for one replica: its _SpawnFn (fn, args, kwargs), or a partial of that."""
    if isinstance(call, functools.partial) and not (call.args or call.keywords):
        call = call.func
    if not all(hasattr(call, part) for part in ("fn", "args", "kwargs")):
        return call
    memo, mine = {}, copy.copy(call)
    mine.fn = _copied(call.fn, memo)
    mine.args = tuple(_copied(x, memo) for x in call.args)
    mine.kwargs = {name: _copied(x, memo) for name, x in call.kwargs.items()}
    return mine


def _one_device(supported):
    """xm.get_xla_supported_devices: a replica has one, as a process of a TPU v4 or later."""
    @functools.wraps(supported)
    def devices(*args, **kwargs):
        import torch_xla
        return supported(*args, **kwargs) if _own.states is None else [str(torch_xla.device())]
    return devices


def _moved_copy(self, device):
    """MpModelWrapper.to: there is one wrapper for all replicas."""
    with self._lock:
        return copy.deepcopy(self._model).to(device)


# ---- running ----


def _with_own_states(fn):
    """The function of a replica. All begin with the same states, as processes that have just started do. When one has failed, its
    error is that of the others which then wait for it in vain."""
    first, failed = [get() for get, _ in _sources], []

    @functools.wraps(fn)
    def replica(*args, **kwargs):
        _own.states = list(first)
        try:
            with _lock:
                mine = _copies(fn)
            return mine(*args, **kwargs)
        except Exception as e:
            with _lock:
                failed.append(e)
            if len(failed) == 1:
                traceback.print_exc()  # now: the pool tells of it when all others have ended
                os.environ["WEFT_EXCHANGE_TIMEOUT"] = "2"  # they need not wait long for this one
            raise failed[0] from None
        finally:
            _own.states = None
    return replica


def prepare():
    """Gives the threads that torch_xla will start states of their own."""
    try:
        from torch_xla._internal import pjrt
        run = pjrt._run_thread_per_device
    except (ImportError, AttributeError):
        warnings.warn("this version of torch_xla starts replicas in a way that weft does not know: torch.manual_seed in several replicas "
                      "of one process is one for all")
        return
    if getattr(run, "of_weft", False):
        return

    @functools.wraps(run)
    def run_thread_per_device(local_rank, local_world_size, fn, initializer_fn):
        _install()
        groups.install(lambda: None if _own.states is None else id(_own.states))
        return run(local_rank, local_world_size, _with_own_states(fn), initializer_fn)
    run_thread_per_device.of_weft = True
    pjrt._run_thread_per_device = run_thread_per_device
    import torch_xla.core.xla_model as xm
    from torch_xla.distributed.xla_multiprocessing import MpModelWrapper
    xm.get_xla_supported_devices = _one_device(xm.get_xla_supported_devices)
    MpModelWrapper.to = _moved_copy
