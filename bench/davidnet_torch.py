#!/usr/bin/env python3
"""DavidNet on CIFAR-10 in PyTorch: the recipe of `weft train davidnet`, for its accuracy and time beside weft's.

    python3 bench/davidnet_torch.py FILE.rec.xz [--epochs 24] [--batch 512] [--threads N] [--seed 1] [--steps N]

FILE is what `weft train --data cifar10:FILE` reads (tools/cifar_bin.py has the format). Needs torch, numpy and Pillow. Network, initial values,
pictures' changes (reflected shift by up to 4, mirror, an 8 x 8 hole of the mean), Nesterov momentum 0.9, decay 0.0005 on all weights, rate up to 0.4
over 490 of 2,328 steps and straight down to 0, no part of a batch at an epoch's end: as there; the draws differ. Prints a line an epoch."""
import argparse
import io
import lzma
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional as F


def pictures(path):
    data, at, out, labels = lzma.open(path).read(), 0, [], []
    while at < len(data):
        n = int.from_bytes(data[at + 1:at + 3], "little")
        labels.append(data[at])
        out.append(np.asarray(Image.open(io.BytesIO(data[at + 3:at + 3 + n])).convert("RGB")))
        at += 3 + n
    return np.stack(out), np.array(labels)


def changed(rng, batch, mean):
    """A batch of uint8 [n, 32, 32, 3], shifted, mirrored, with a hole."""
    n = len(batch)
    padded = np.pad(batch, ((0, 0), (4, 4), (4, 4), (0, 0)), mode="reflect")
    out = np.empty_like(batch)
    for i, (dy, dx, flip, y, x) in enumerate(zip(rng.integers(0, 9, n), rng.integers(0, 9, n), rng.integers(0, 2, n), rng.integers(0, 25, n),
                                                 rng.integers(0, 25, n))):
        crop = padded[i, dy:dy + 32, dx:dx + 32]
        out[i] = crop[:, ::-1] if flip else crop
        out[i, y:y + 8, x:x + 8] = mean
    return out


class Unit(nn.Sequential):
    def __init__(self, n_in, n_out):
        conv = nn.Conv2d(n_in, n_out, 3, padding=1, bias=False)
        super().__init__(conv, nn.BatchNorm2d(n_out), nn.ReLU())


class Residual(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.body = nn.Sequential(Unit(n, n), Unit(n, n))

    def forward(self, x):
        return x + self.body(x)


def davidnet():
    fc = nn.Linear(512, 10, bias=False)
    pool = lambda: nn.MaxPool2d(2)
    return nn.Sequential(Unit(3, 64), Unit(64, 128), pool(), Residual(128), Unit(128, 256), pool(), Unit(256, 512), pool(), Residual(512),
                         nn.AdaptiveMaxPool2d(1), nn.Flatten(), fc)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("file")
    for name, value in dict(epochs=24, batch=512, threads=0, seed=1, steps=0).items():
        p.add_argument("--" + name, type=int, default=value)
    a = p.parse_args()
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    rng = np.random.default_rng(a.seed)
    x, y = pictures(a.file)
    train, test = (x[:50000], y[:50000]), (x[50000:], y[50000:])
    mean, std = (f(train[0] / np.float32(255), (0, 1, 2)) for f in (np.mean, np.std))
    to = lambda b: torch.from_numpy(((b / np.float32(255) - mean) / std).astype(np.float32)).permute(0, 3, 1, 2)  # NHWC in memory
    net = davidnet().to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(net.parameters(), lr=0.4, momentum=0.9, weight_decay=5e-4, nesterov=True)
    per_epoch = len(train[0]) // a.batch
    total, done, begin = a.epochs * per_epoch, 0, time.perf_counter()
    warm = round(total * 490 / 2328)
    for epoch in range(1, a.epochs + 1):
        net.train()
        order = rng.permutation(len(train[0]))
        for i in range(per_epoch):
            rows = order[i * a.batch:(i + 1) * a.batch]
            opt.param_groups[0]["lr"] = 0.4 * min((done + 1) / warm, 1, max(0, (total - done) / (total - warm)))
            loss = F.cross_entropy(net(to(changed(rng, train[0][rows], np.round(255 * mean)))) * 0.125, torch.from_numpy(train[1][rows]).long())
            opt.zero_grad()
            loss.backward()
            opt.step()
            done += 1
            if done == a.steps:
                return print(f"{done} steps in {time.perf_counter() - begin:.1f} s, loss {loss.item():.4f}")
        net.eval()
        with torch.no_grad():
            right = sum((net(to(test[0][i:i + 1000])).argmax(1).numpy() == test[1][i:i + 1000]).sum() for i in range(0, len(test[0]), 1000))
        print(f"epoch {epoch}  loss {loss.item():.4f}  test accuracy {right / len(test[0]) * 100:.2f} %  {time.perf_counter() - begin:.0f} s", flush=True)


main()
