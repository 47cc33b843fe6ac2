"""Functions that PyTorch/XLA computes in another way than CUDA, or refuses."""
import inspect

import torch

from weft.torch.where import on_device


def _clamped(size, part):
    """A slice that begins or ends further left than its dimension goes, as Python reads it: PyTorch/XLA refuses it."""
    if not isinstance(part, slice) or not all(x is None or isinstance(x, int) for x in (part.start, part.stop, part.step)):
        return part
    return slice(*(None if x is None else max(x, -size) for x in (part.start, part.stop)), part.step)


def _getitem(tensor, index):
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(p, slice) and any(isinstance(x, int) and x < 0 for x in (p.start, p.stop)) for p in parts):
        if not any(isinstance(p, torch.Tensor) or p is Ellipsis or p is None or isinstance(p, (list, bool)) for p in parts):
            index = tuple(map(_clamped, tensor.shape, parts))
        elif parts[0] is Ellipsis and len(parts) == 2:
            index = (..., _clamped(tensor.shape[-1], parts[1]))
    return tensor[index]


def _dense(fn):
    """Embeddings whose gradients are asked to be sparse: PyTorch/XLA has no sparse tensors, and dense ones say the same."""
    signature = inspect.signature(fn)

    def answer(*args, **kwargs):
        given = signature.bind(*args, **kwargs)
        if given.arguments.get("sparse") and any(map(on_device, args)):
            given.arguments["sparse"] = False
        return fn(*given.args, **given.kwargs)
    return answer


def answers():
    """{function of torch: what it is on the device}"""
    functions = torch.nn.functional
    dense = {fn: _dense(fn) for fn in (functions.embedding, functions.embedding_bag)}
    return {torch.Tensor.__getitem__: _getitem, **dense}
