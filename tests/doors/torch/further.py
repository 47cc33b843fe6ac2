"""More of what scripts for "cuda" do: mixed precision in its old and new forms, packed sequences, one process of
DistributedDataParallel, compiled modules, files that go on, questions of where tensors lie. Arguments: steps. Prints numbers as JSON."""
import argparse
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()
cuda = torch.cuda.is_available()
device = torch.device("cuda", 0) if cuda else torch.device("cpu")
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
dist.init_process_group("nccl" if cuda else "gloo", store=None if cuda else dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)


class Reader(nn.Module):
    """Texts of different lengths, and a norm whose running numbers are what it is evaluated with."""

    def __init__(self):
        super().__init__()
        self.words, self.lstm = nn.Embedding(20, 8, padding_idx=0), nn.LSTM(8, 12, batch_first=True, bidirectional=True)
        self.norm, self.out = nn.BatchNorm1d(24), nn.Linear(24, 3)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.words(x), lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, (last, _) = self.lstm(packed)
        every = pad_packed_sequence(states, batch_first=True)[0]
        return self.out(self.norm(torch.cat([last[0], last[1]], 1)) + every[:, -100:].amax(1))


def train(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, lengths), y)
        loss.backward()
        optimizer.step()
        out.append(loss.item())


x, lengths, y = torch.randint(1, 20, (6, 9)), torch.tensor([9, 3, 5, 7, 2, 9]), torch.arange(6) % 3
x, lengths, y = x.to(device), lengths.to(device), y.to(device)
out, net = [], torch.compile(Reader().to(device)) if cuda else Reader()
model = DistributedDataParallel(net, device_ids=[0] if cuda else None)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
train(model, optimizer, args.steps)
total = torch.ones(2, device=device)
dist.all_reduce(total)
out += total.tolist()
with tempfile.TemporaryDirectory() as folder:
    torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, f"{folder}/state.pt")
    state = torch.load(f"{folder}/state.pt", map_location=device)
    assert next(iter(state["model"].values())).device == device and len(torch.load(f"{folder}/state.pt", map_location="cpu")) == 2
again = Reader().to(device)
again.load_state_dict({name.removeprefix("_orig_mod."): value for name, value in state["model"].items()})
optimizer = torch.optim.Adam(again.parameters(), lr=1e-2)
optimizer.load_state_dict(state["optimizer"])
train(again, optimizer, 2)
with torch.no_grad():
    out += again.eval()(x, lengths).flatten().tolist()
out += again.norm.running_var.tolist()

if cuda:
    assert x.device == device and str(x.device) == "cuda:0" and "cuda:0" in repr(x) and x.is_cuda and not torch.ones(1).is_cuda
    assert x.float().type() == "torch.cuda.FloatTensor" and isinstance(x.float(), torch.cuda.FloatTensor)
    linear, rows = nn.Linear(8, 4).to(device), torch.randn(4, 8, device=x.device)
    with torch.cuda.amp.autocast():
        assert linear(rows).dtype == torch.float16 and torch.is_autocast_enabled() and torch.get_autocast_gpu_dtype() == torch.float16
    with torch.autocast("cuda"):
        assert linear(rows).dtype == torch.float16
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        assert linear(rows).dtype == torch.bfloat16
        with torch.amp.autocast("cuda", enabled=False):
            assert linear(rows).dtype == torch.float32
    assert linear(rows).dtype == torch.float32 and not torch.is_autocast_enabled()
    torch.cuda.reset_max_memory_allocated()
    assert torch.accelerator.memory_allocated() > 0 and torch.cuda.get_arch_list()
dist.destroy_process_group()
print(json.dumps(out))
