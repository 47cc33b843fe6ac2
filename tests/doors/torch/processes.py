"""torchrun: a process for each replica, DistributedDataParallel over PyTorch/XLA's backend. Writes what each process got. Arguments: a folder."""
import json
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend  # noqa: F401
from replicas import data, model
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("xla", init_method="xla://")
device, rank, n = torch_xla.device(), dist.get_rank(), dist.get_world_size()
total = torch.full((2,), rank + 1.0, device=device)
dist.all_reduce(total)
out = {"world": n, "sum": total.tolist(), "gathered": xm.all_gather(torch.full((1,), rank + 1.0, device=device)).tolist(),
       "reduced": xm.mesh_reduce("rank", rank, sum)}
net = model() if rank == 0 else torch.nn.Sequential(*[torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)])  # takes 0's
net = DistributedDataParallel(net.to(device))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = data()
x, y = x[rank::n].to(device), y[rank::n].to(device)
half = len(x) // 2
for _ in range(3):
    with net.no_sync():
        (F.cross_entropy(net(x[:half]), y[:half]) / 2).backward()
    (F.cross_entropy(net(x[half:]), y[half:]) / 2).backward()
    optimizer.step()
    optimizer.zero_grad()
    torch_xla.sync()
out["weights"] = [v for p in net.parameters() for v in p.detach().cpu().flatten().tolist()]
(pathlib.Path(sys.argv[1]) / f"{rank}.json").write_text(json.dumps(out))
dist.destroy_process_group()
print(json.dumps(n))
