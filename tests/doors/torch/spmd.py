"""One program over a mesh: tensor parallel with partly replicated parameters, and FSDPv2. Prints {name: [got, want]}."""
import copy
import json

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch_xla
import torch_xla.distributed.spmd as xs
import torch_xla.runtime as xr
from torch_xla.experimental.spmd_fully_sharded_data_parallel import SpmdFullyShardedDataParallel as FSDPv2

xr.use_spmd()
N = xr.global_runtime_device_count()
DEVICE = torch_xla.device()


def data():
    generator = torch.Generator().manual_seed(8)
    return torch.randn(16, 8, generator=generator), torch.randint(0, 4, (16,), generator=generator)


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def train(net, x, y):
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    out = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        if x.device.type == "xla":
            torch_xla.sync()
        out.append(loss.item())
    return out


def sharding(tensor):
    return torch_xla._XLAC._get_xla_sharding_spec(tensor)


def tensor_parallel():
    mesh = xs.Mesh(np.arange(N), (N // 2, 2), ("data", "model"))
    net, (x, y) = model(), data()
    twin = copy.deepcopy(net)
    net.to(DEVICE)
    xs.mark_sharding(net[0].weight, mesh, ("model", None))
    xs.mark_sharding(net[2].weight, mesh, (None, "model"))
    x_device = x.to(DEVICE)
    xs.mark_sharding(x_device, mesh, ("data", None))
    got = train(net, x_device, y.to(DEVICE))
    assert "replicated}" != sharding(net[0].weight).strip("{"), sharding(net[0].weight)
    return got + net[0].weight.detach().cpu().flatten().tolist(), train(twin, x, y) + twin[0].weight.detach().flatten().tolist()


def fsdp():
    mesh = xs.Mesh(np.arange(N), (N, 1), ("fsdp", "model"))
    net, (x, y) = model(), data()
    twin = copy.deepcopy(net)
    net = FSDPv2(net.to(DEVICE), mesh=mesh)
    x_device = x.to(DEVICE)
    xs.mark_sharding(x_device, mesh, ("fsdp", None))
    return train(net, x_device, y.to(DEVICE)), train(twin, x, y)


print(json.dumps({"tensor_parallel": tensor_parallel(), "fsdp": fsdp()}))
