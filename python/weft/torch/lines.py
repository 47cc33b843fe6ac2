"""Lines of the user's program in what weft says of memory, time and errors. PyTorch/XLA knows where each operation comes from while its IR's
debugging is on, but tracing takes half as long again then. So it is on while programs are new, and off from the first step that
compiled nothing until one compiles again.

Private parts of torch_xla that are used: `_XLAC._set_ir_debug`, `_xla_step_marker`, `_xla_counter_value`.
"""
import functools
import threading

import torch_xla
from torch.optim import optimizer

SECONDS = 10  # after which programs are taken for old that make no steps
_known = {}  # programs compiled when each kind of step ended before


def _step(kind):
    core = torch_xla._XLAC
    now = core._xla_counter_value("UncachedCompile")
    core._set_ir_debug(now != _known.get(kind, -1))
    _known[kind] = now


def _then_step(marker):
    @functools.wraps(marker)
    def marked(*args, **kwargs):
        try:
            out = marker(*args, **kwargs)
        except Exception:  # perhaps it did not fit: what is tried next has lines
            torch_xla._XLAC._set_ir_debug(True)
            raise
        _step("marker")
        return out
    return marked


@functools.cache
def prepare():
    core = torch_xla._XLAC
    if not all(hasattr(core, name) for name in ("_set_ir_debug", "_get_ir_debug", "_xla_step_marker", "_xla_counter_value")):
        return  # reports name operations, but no lines
    if core._get_ir_debug():
        return  # the user wants it on
    core._set_ir_debug(True)
    core._xla_step_marker = _then_step(core._xla_step_marker)
    optimizer.register_optimizer_step_post_hook(lambda *_: _step("optimizer"))  # of programs without markers
    later = threading.Timer(SECONDS, core._set_ir_debug, (False,))
    later.daemon = True
    later.start()
