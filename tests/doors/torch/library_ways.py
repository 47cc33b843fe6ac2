"""What libraries and older scripts do with "cuda": parameters that are moved after their optimizer was made, storage, complex numbers,
recurrent nets, sparse embeddings, sharded modules of one process, what kind of GPU it is. Prints numbers as JSON."""
import json
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, fully_shard

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
dist.init_process_group("nccl" if cuda else "gloo", store=None if cuda else dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)
out = []


class Net(nn.Module):
    """An operator on spectra, a recurrent net, an embedding with sparse gradients, a norm; two embeddings are one."""

    def __init__(self):
        super().__init__()
        self.words, self.again, self.gru = nn.Embedding(20, 8, sparse=True), nn.Embedding(20, 8), nn.GRU(8, 8, 2, batch_first=True)
        self.again.weight = self.words.weight
        self.spectral = nn.Parameter(torch.randn(8, 8, 4, dtype=torch.cfloat) * 0.2)
        self.norm, self.out = nn.BatchNorm1d(8), nn.Linear(8, 3)

    def forward(self, x):
        x = self.gru(self.words(x) + self.again(x))[0].transpose(1, 2)
        z = torch.fft.rfft(x)
        z = torch.einsum("bic,ioc->boc", z[:, :, :4], self.spectral)
        return self.out(self.norm(z.abs().mean(-1)))


x, y = torch.randint(0, 20, (6, 9)), (torch.arange(6) % 3).to(device)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
first = net.out.weight
net.to(device)
x = x.to(device)
assert net.out.weight is first and net.again.weight is net.words.weight and first.device.type == device.type
for _ in range(3):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    out.append(nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True).item())
    optimizer.step()
    out.append(loss.item())
net.eval()
with torch.inference_mode():
    out += net(x).flatten().tolist()
window = torch.hann_window(16, device=device)
signal = torch.sin(torch.arange(64, device=device) / 5)
out += torch.istft(torch.stft(signal, 16, 4, window=window, return_complex=True), 16, 4, window=window)[8:16].tolist()
net.out.bias.data = torch.zeros(3, device=device)
assert net.again.weight.untyped_storage().data_ptr() == net.words.weight.untyped_storage().data_ptr() != first.untyped_storage().data_ptr()


def sharded(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        loss = (model(rows).float() - 1).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


rows = torch.randn(4, 8).to(device)
torch.manual_seed(1)
layers = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))
out.append(sharded(FullyShardedDataParallel(layers, device_id=device, mixed_precision=MixedPrecision(param_dtype=torch.bfloat16)) if cuda
                   else layers))
layers = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
out.append(sharded(fully_shard(layers) if cuda else layers))
told = [{"name": "run"}]
dist.broadcast_object_list(told, 0)

if cuda:
    about = torch.cuda.get_device_properties(0)
    assert (about.name, about.major, about.minor, about.multi_processor_count) == ("NVIDIA A100-SXM4-80GB", 8, 0, 108), about
    assert torch.cuda.get_device_capability() == (8, 0) and torch.zeros(2).to(0).is_cuda and torch.ones(1, device=0).is_cuda
    assert isinstance(torch.cuda.CUDAGraph, type)  # libraries annotate by it
    try:
        (torch.zeros(1 << 23, 4096, device="cuda") + 1).sum(1)
        wide = torch.zeros(1 << 23, 4096, device="cuda") + 1
        torch.cuda.synchronize()
    except torch.cuda.OutOfMemoryError as error:
        assert str(error).startswith("CUDA out of memory.")
    else:
        raise AssertionError("128 GiB were held")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as record:
        rows.sum()
    assert record.key_averages()
dist.destroy_process_group()
print(json.dumps(out))
