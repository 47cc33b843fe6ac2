"""Packed sequences of different lengths (torch.nn.utils.rnn), which PyTorch/XLA has no form of: rows are taken and put back by their numbers.

Private parts of PyTorch that are used: `_VF._pack_padded_sequence` and `_pad_packed_sequence`.
"""
import functools

import torch

from weft.torch.where import on_device


def _numbers(batch_sizes, batch):
    """Of the packed rows among those of an array [time, batch]."""
    return torch.cat([t * batch + torch.arange(int(n)) for t, n in enumerate(batch_sizes)])


def _packs(pack):
    @functools.wraps(pack)
    def packed(x, lengths, batch_first=False):
        if not on_device(x):
            return pack(x, lengths, batch_first)
        x = x.transpose(0, 1) if batch_first else x
        batch_sizes = (lengths[None] > torch.arange(int(lengths.max()))[:, None]).sum(1)
        return x.flatten(0, 1).index_select(0, _numbers(batch_sizes, x.shape[1]).to(x.device)), batch_sizes
    return packed


def _pads(pad):
    @functools.wraps(pad)
    def padded(data, batch_sizes, batch_first=False, value=0.0, length=0):
        if not on_device(data):
            return pad(data, batch_sizes, batch_first, value, length)
        batch, time = int(batch_sizes[0]), max(int(length), len(batch_sizes))
        rows = data.new_full((time * batch, *data.shape[1:]), value)
        x = rows.index_copy(0, _numbers(batch_sizes, batch).to(data.device), data).unflatten(0, (time, batch))
        return x.transpose(0, 1) if batch_first else x, (batch_sizes[:, None] > torch.arange(batch)).sum(0)
    return padded


@functools.cache
def prepare():
    torch._VF._pack_padded_sequence = _packs(torch._VF._pack_padded_sequence)
    torch._VF._pad_packed_sequence = _pads(torch._VF._pad_packed_sequence)
