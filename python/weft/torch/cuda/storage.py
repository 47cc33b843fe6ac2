"""Where a tensor's numbers lie: libraries ask for it to tell which tensors are one, and to move them. PyTorch/XLA's have no address.

Private parts of torch_xla that are used: `_XLAC._xla_get_tensor_id`.
"""
import torch
import torch_xla

from weft.torch.where import on_device

APART = 1 << 40  # bytes between what two tensors' addresses are taken for


def _address(tensor):
    """Of the tensor that it is a view of, if it is one; where in it is not known."""
    with torch._C.DisableTorchFunction():
        return APART * (1 + torch_xla._XLAC._xla_get_tensor_id(tensor if tensor._base is None else tensor._base))


class Storage:
    """Of a tensor on the virtual GPU: what can be known of it."""

    def __init__(self, tensor):
        self.tensor, self.dtype, self.device = tensor, tensor.dtype, torch.device("cuda", 0)

    def data_ptr(self):
        return _address(self.tensor)

    _data_ptr = data_ptr

    def nbytes(self):
        return self.tensor.numel() * self.tensor.element_size()

    def size(self):
        return self.nbytes()

    def __len__(self):
        return self.nbytes()

    def untyped(self):
        return self

    def __getattr__(self, name):
        raise NotImplementedError(f"the storage of a tensor on weft's virtual GPU has no {name}: take a copy on the CPU (tensor.cpu())")


def _storage(fn):
    return lambda tensor, *args, **kwargs: Storage(tensor) if on_device(tensor) else fn(tensor, *args, **kwargs)


def set_data(tensor, value):
    """tensor.data = value, from one device to another as well, for which PyTorch/XLA has no form."""
    if on_device(tensor) == on_device(value):
        tensor.data = value
        return
    made = torch.nn.Parameter(value.detach(), tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else value.detach()
    torch.utils.swap_tensors(tensor, made)


def answers():
    """{function of torch: what it is on the device}"""
    of = torch.Tensor
    out = {fn: _storage(fn) for fn in (of.untyped_storage, of.storage, of._typed_storage)}
    return {**out, of.data_ptr: lambda tensor: _address(tensor) if on_device(tensor) else tensor.data_ptr()}
