"""What scripts for "cuda" do around their steps: loaders that pin memory, DataParallel, checkpoints of activations in both forms, dropout
that is the same when it is computed again, streams, timed events, states of random numbers. Prints numbers as JSON."""
import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.blocks = nn.Linear(20, 32), nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.Tanh()) for _ in range(2))
        self.last = nn.Linear(32, 5)

    def forward(self, x):
        x = self.first(x)
        for i, block in enumerate(self.blocks):
            x = x + checkpoint(block, x, use_reentrant=i == 1)
        return self.last(x)


def dropped(p):
    """Gradients through a checkpoint whose dropout must be drawn twice alike: x * mask / keep, summed, has the mask's gradient."""
    x = torch.ones(64, device=device, requires_grad=True)
    y = checkpoint(lambda z: F.dropout(z * 2, p), x, use_reentrant=False)
    (y * y).sum().backward()
    return (x.grad - 4 * y.detach() / (1 - p)).abs().max().item()  # dy/dx = 2 mask / keep


net = nn.DataParallel(Net()).to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
data = TensorDataset(torch.randn(32, 20), torch.randint(0, 5, (32,)))
out = []
if cuda:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.ones(3, device=device)
    torch.cuda.current_stream().wait_stream(torch.cuda.Stream())
for x, y in DataLoader(data, batch_size=8, num_workers=2, pin_memory=True):
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(net(x.to(device, non_blocking=True)), y.to(device, non_blocking=True))
    loss.backward()
    optimizer.step()
    out.append(loss.item())
if cuda:
    end.record()
    torch.cuda.synchronize()
    assert 0 < begin.elapsed_time(end) < 50, begin.elapsed_time(end)  # milliseconds of the chip
    state = torch.cuda.get_rng_state()
    first = torch.rand(4, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(first, torch.rand(4, device="cuda"))
    assert torch.cuda.FloatTensor([1, 2]).is_cuda and torch.accelerator.current_accelerator().type == "cuda"
out.append(dropped(0.5))
print(json.dumps(out))
