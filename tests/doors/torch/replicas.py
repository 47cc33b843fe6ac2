"""Data parallel training and exchanges of torch_xla.launch: each replica prints what it got. Arguments: a folder for results."""
import json
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend  # noqa: F401
import torch_xla.runtime as xr
from torch.nn.parallel import DistributedDataParallel
from torch_xla.distributed.parallel_loader import MpDeviceLoader


def data():
    generator = torch.Generator().manual_seed(7)
    return torch.randn(16, 6, generator=generator), torch.randint(0, 3, (16,), generator=generator)


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def replica(index, folder):
    device, n = torch_xla.device(), xr.world_size()
    out = {"ordinal": xr.global_ordinal(), "world": n}
    mine = torch.full((4,), index + 1.0, device=device)
    out["all_reduce"] = xm.all_reduce(xm.REDUCE_SUM, mine * 1.0).tolist()
    out["all_gather"] = xm.all_gather(mine, dim=0).tolist()
    out["reduce_scatter"] = xm.reduce_scatter(xm.REDUCE_SUM, mine * torch.arange(4.0, device=device), scale=1.0, scatter_dim=0,
                                              shard_count=n).tolist()
    mine_of_all = torch.arange(1.0 * n, device=device).reshape(n, 1) + 10 * index
    out["all_to_all"] = xm.all_to_all(mine_of_all, 0, 0, n).flatten().tolist()
    out["permuted"] = xm.collective_permute(mine * 1.0, [[i, (i + 1) % n] for i in range(n)]).tolist()
    out["in_groups"] = xm.all_reduce(xm.REDUCE_SUM, mine * 1.0, groups=[[i, i + 1] for i in range(0, n, 2)]).tolist()
    if index == 0:  # a program of its own before the next exchange
        mine = mine * 3 - 2
    out["after"] = xm.all_reduce(xm.REDUCE_MAX, mine * 1.0).tolist()
    torch.manual_seed(index)
    drawn = [torch.randn(1).item() for _ in range(50)]
    out["drawn"] = drawn[-1]

    net = model().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = data()
    part = torch.utils.data.TensorDataset(x[index::n], y[index::n])
    for xb, yb in MpDeviceLoader(torch.utils.data.DataLoader(part, batch_size=2), device):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(xb), yb)
        loss.backward()
        xm.optimizer_step(optimizer)
    out["weights"] = [v for p in net.parameters() for v in p.detach().cpu().flatten().tolist()]
    out["loss"] = xm.mesh_reduce("loss", loss.item(), lambda v: sum(v) / len(v))
    dist.init_process_group("xla", init_method="xla://")
    net = DistributedDataParallel((model() if index == 0 else nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))).to(device))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(len(part) // 2):
        xb, yb = part[2 * step:2 * step + 2]
        optimizer.zero_grad()
        F.cross_entropy(net(xb.to(device)), yb.to(device)).backward()
        optimizer.step()
    out["ddp"] = [v for p in net.parameters() for v in p.detach().cpu().flatten().tolist()]
    total = torch.full((2,), index + 1.0, device=device)
    dist.all_reduce(total)
    out["distributed"] = [dist.get_rank(), dist.get_world_size(), *total.tolist()]
    xm.rendezvous("end")
    (pathlib.Path(folder) / f"{index}.json").write_text(json.dumps(out))


def truth(n):
    """The same in PyTorch alone: the gradients of the replicas' batches are averaged."""
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = data()
    for step in range(len(x) // n // 2):
        optimizer.zero_grad()
        each = [F.cross_entropy(net(x[i::n][2 * step:2 * step + 2]), y[i::n][2 * step:2 * step + 2]) for i in range(n)]
        loss = sum(each) / n
        loss.backward()
        optimizer.step()
    drawn = []
    for i in range(n):
        torch.manual_seed(i)
        drawn.append([torch.randn(1).item() for _ in range(50)][-1])
    return {"weights": [v for p in net.parameters() for v in p.detach().flatten().tolist()], "loss": loss.item(), "drawn": drawn}


def one_fails(index):
    if index == 1:
        raise ValueError("no such file")
    xm.all_reduce(xm.REDUCE_SUM, torch.ones(2, device=torch_xla.device())).tolist()


if __name__ == "__main__":
    if sys.argv[1] == "one_fails":
        torch_xla.launch(one_fails)
    torch_xla.launch(replica, args=(sys.argv[1],))
    print(json.dumps(truth(int(sys.argv[2]))))
