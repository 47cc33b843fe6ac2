"""torch.cuda on a device of PyTorch/XLA: what scripts written for "cuda" call, answered for the virtual GPU.

    device = cuda.install()
    with device:
        ...            # "cuda" is the virtual GPU; tensors that lie there say that their device is "cuda:0"
"""
import torch

from weft.torch.cuda import amp, answers, compiled, files, modules, parallel, profiled
from weft.torch.cuda.device import Device


def install():
    """Puts the virtual GPU in CUDA's place; the mode returned is to be entered around the script."""
    for part in (answers, amp, compiled, files, modules, parallel, profiled):
        part.install()
    torch.backends.mha.set_fastpath_enabled(False)  # kernels of CUDA's own
    return Device()
