"""torch.compile: what the script does up to an optimizer's step is one program in any case, so functions and modules stay as they are."""
import torch


def _same(model=None, **kwargs):
    if model is None:
        return _same
    if isinstance(model, torch.nn.Module):
        object.__setattr__(model, "_orig_mod", model)  # by which scripts reach the module that was compiled
    return model


def install():
    torch.compile = _same
    torch.nn.Module.compile = lambda self, *args, **kwargs: None
