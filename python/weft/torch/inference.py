"""torch.inference_mode as no_grad, on all devices of the process: PyTorch/XLA refuses modules in the other."""
import functools

import torch


class inference_mode(torch.no_grad):  # noqa: N801  torch's name
    def __new__(cls, mode=True):
        if isinstance(mode, bool):
            return super().__new__(cls)
        return cls()(mode)  # a decorator without brackets

    def __init__(self, mode=True):
        super().__init__()
        self.mode = mode

    def __enter__(self):
        self.prev = torch.is_grad_enabled()
        torch.set_grad_enabled(not self.mode)

    def clone(self):
        return type(self)(self.mode)


@functools.cache
def prepare():
    torch.inference_mode = torch.autograd.inference_mode = torch.autograd.grad_mode.inference_mode = inference_mode
