"""Programs for TorchTPU's device "tpu", each there and on PyTorch's CPU in the same run. Prints one JSON object: {name: [got, want]}."""
import copy
import json
import sys
import time
import traceback

import torch
import torch.nn as nn
import torch.nn.functional as F

CASES = {}


def case(fn):
    CASES[fn.__name__] = fn
    return fn


def flat(*tensors):
    return [v for t in tensors for v in t.detach().cpu().float().flatten().tolist()]


def trained(make, x, y, optimizer=lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9), compiled=False, steps=4):
    torch.manual_seed(0)
    twin = make().train()
    out = []
    for model, device in ((copy.deepcopy(twin).to("tpu"), "tpu"), (twin, "cpu")):
        step = torch.compile(model, backend="tpu") if compiled and device == "tpu" else model
        opt, seen = optimizer(model.parameters()), []
        for _ in range(steps):
            opt.zero_grad()
            loss = F.cross_entropy(step(x.to(device)), y.to(device))
            loss.backward()
            opt.step()
            seen.append(loss.item())
        out.append(seen)
    return out


def on_both(fn, *tensors):
    return flat(*fn(*(t.to("tpu") for t in tensors))), flat(*fn(*tensors))


def numbers(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


LABELS = torch.arange(8) % 4


def convolutions():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 16, 4))


@case
def eager():
    return trained(convolutions, numbers(8, 3, 8, 8), LABELS)


@case
def adamw():
    return trained(lambda: nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)), numbers(8, 6), LABELS,
                   lambda p: torch.optim.AdamW(p, lr=1e-3))


@case
def compiled():
    return trained(convolutions, numbers(8, 3, 8, 8), LABELS, compiled=True)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), 2, enable_nested_tensor=False)
        self.out = nn.Linear(16, 4)

    def forward(self, x):
        return self.out(self.layers(x, mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)).mean(1))


@case
def transformer():
    return trained(Reader, numbers(8, 5, 16), LABELS)


@case
def transformer_compiled():
    return trained(Reader, numbers(8, 5, 16), LABELS, compiled=True)


@case
def attention():
    return on_both(lambda q: (F.scaled_dot_product_attention(q, q, q, is_causal=True),), numbers(1, 2, 32, 64))


@case
def recurrent():
    torch.manual_seed(0)
    lstm = nn.LSTM(8, 12, batch_first=True)
    twin = copy.deepcopy(lstm).to("tpu")
    return flat(twin(numbers(3, 5, 8).to("tpu"))[0]), flat(lstm(numbers(3, 5, 8))[0])


@case
def operations():
    return on_both(lambda x: (torch.sort(x)[0], torch.topk(x, 3)[0], torch.cumsum(x, 1), x[x > 0], torch.linalg.inv(x[:, :4]),
                              (x.bfloat16() @ x.bfloat16().T).float(), x.argmax(1)), numbers(4, 9))


@case
def memory():
    def allocated():  # TorchTPU calls the device from a thread of its own
        torch.accelerator.synchronize()
        return torch.accelerator.memory_allocated()
    before = allocated()
    kept = torch.zeros(1 << 20, device="tpu") + 1
    for _ in range(100):  # and gives up what it needed in between when that thread comes to it
        if (held := (allocated() - before) / 2**22) == 1:
            break
        time.sleep(0.1)
    return [held, kept[0].item(), torch.accelerator.device_count()], [1, 1, 1]


if __name__ == "__main__":
    out = {}
    for name in sys.argv[1:] or CASES:
        try:
            out[name] = CASES[name]()
        except Exception:  # the others still count
            out[name] = traceback.format_exc()
    print(json.dumps(out))
