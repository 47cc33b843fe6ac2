"""Names for what a captured step reads, and the user's lines for what it computes, in the metadata of its HLO.

Private parts of torch_xla that are used: `_XLAC._set_xla_custom_op_name_prefix(tensor, prefix, frames)`, which names what `tensor` is
computed by and keeps that many of Python's frames, where XLA_IR_DEBUG and XLA_HLO_DEBUG are set. Without it the step has no names.
"""
import gc
import os

import torch

from weft.torch.where import on_device

FRAMES = 64  # of a stack that are kept


def record():
    """Before torch_xla is imported: it is to keep Python's frames."""
    os.environ["XLA_IR_DEBUG"] = os.environ["XLA_HLO_DEBUG"] = "1"


def _mark(tensor, prefix):
    import torch_xla
    mark = getattr(torch_xla._XLAC, "_set_xla_custom_op_name_prefix", None)
    if mark and on_device(tensor):
        mark(tensor, prefix, FRAMES)


def _of_type(kind):
    return [x for x in gc.get_objects() if issubclass(type(x), kind)]


def _outermost():
    """Modules that are part of no other, of those with tensors."""
    modules = _of_type(torch.nn.Module)
    inner = {id(child) for module in modules for child in module.children()}
    return [m for m in modules if id(m) not in inner and next(m.parameters(), next(m.buffers(), None)) is not None]


def of_tensors(optimizer):
    """{tensor: name} of parameters, buffers and the optimizer's slots: "layers.0.weight", "exp_avg of layers.0.weight"."""
    names, modules = {}, _outermost()
    for module in modules:
        own = f"{type(module).__name__}." if len(modules) > 1 else ""
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            names.setdefault(tensor, own + name.replace("_orig_mod.", ""))
    for parameter, slots in optimizer.state.items():
        for slot, tensor in slots.items() if isinstance(slots, dict) else ():
            if isinstance(tensor, torch.Tensor) and parameter in names:
                names.setdefault(tensor, f"{slot} of {names[parameter]}")
    return names


def give(optimizer):
    """To what lies on the device before a step: its program has these names."""
    with torch.no_grad():
        for tensor, name in of_tensors(optimizer).items():
            if on_device(tensor):
                tensor.detach() + 0  # to have a node in a graph, which is what can be named
                _mark(tensor, f"tensor/{name}/")


def keep_frames():
    """Of all that is still to be computed."""
    for tensor in _of_type(torch.Tensor):
        _mark(tensor, "")
