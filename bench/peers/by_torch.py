"""PyTorch, eager or (mode "compile") with torch.compile; images in channels_last, dense weights [out, in], fused optimizers:
what its documentation advises for speed on a CPU. Modes "xla" and "tpu": the same on the device of PyTorch/XLA or TorchTPU (weft's, by
WEFT_DEVICE), with its plain optimizers and a `torch_xla.sync()` at the end of each step."""
import functools
import math
import os

import numpy as np
import torch
import torch.nn.functional as N

exp, tanh, reshape, matmul, concat = torch.exp, torch.tanh, torch.reshape, torch.matmul, torch.cat
relu, silu, relu6, array = N.relu, N.silu, N.relu6, torch.from_numpy
softmax, cumsum = functools.partial(torch.softmax, dim=-1), functools.partial(torch.cumsum, dim=-1)


def open(threads):
    torch.set_num_threads(threads)
    return {"torch": torch.__version__}


# ---- operations ----------------------------------------------------------------------------------------------------------


def conv(p, x, stride=1, pad=0):
    k = p["k"] if "k" in p else p["kd"]
    fn = N.conv2d if x.dim() == 4 else N.conv3d
    return fn(x, k, p.get("b"), stride=stride, padding=pad, groups=1 if "k" in p else k.shape[0])


def conv_transposed(p, x, stride, pad):
    return (N.conv_transpose2d if x.dim() == 4 else N.conv_transpose3d)(x, p["kt"], stride=stride, padding=pad)


def max_pool(x, size, stride, pad=0): return (N.max_pool2d if x.dim() == 4 else N.max_pool3d)(x, size, stride, pad)
def spatial_max(x): return torch.amax(x, (2, 3))
def spatial_mean(x): return torch.mean(x, (2, 3))
def flatten(x): return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)
def image(x, h, w, c): return x.reshape(x.shape[0], h, w, c).permute(0, 3, 1, 2)
def concat_channels(xs): return torch.cat(xs, 1)
def split(x, n): return torch.chunk(x, n, -1)
def transpose(x, order): return x.permute(order)
def leaky_relu(x): return N.leaky_relu(x, 0.2)
def gelu(x, exact): return N.gelu(x, approximate="none" if exact else "tanh")
def dense(p, x): return N.linear(x, p["w"], p.get("b"))
def rows(table, ids): return N.embedding(ids, table)
def embedding(p, ids): return N.embedding(ids, p["table"])
def tied(p, x): return N.linear(x, p["table"])
def sort(x): return torch.sort(x).values
def mean(x, axis=None): return torch.mean(x) if axis is None else torch.mean(x, axis)
def mean_square(x, y): return torch.mean(torch.square((x - y).float()))
def segment_sum(x, ids, n): return x.new_zeros((n, x.shape[1])).index_add(0, ids, x)
def random_normal(key, n): return torch.randn(n)
def batch_norm(p, x): return N.batch_norm(x, None, None, p["gain"], p["bias"], True, 0.1, 1e-5)
def layer_norm(p, x): return N.layer_norm(x, x.shape[-1:], p["gain"], p["bias"], 1e-5)
def rms_norm(p, x): return N.rms_norm(x, x.shape[-1:], p["gain"], 1e-5)
def group_norm(p, x, groups): return N.group_norm(x, groups, p["gain"], p["bias"], 1e-5)
def channels(fn, x): return fn(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
def each_channel(x, v): return x + v[:, :, None, None]
def twice_as_large(x): return N.interpolate(x, scale_factor=2, mode="nearest")
def argmin(x): return torch.argmin(x, -1)
def total(x, axis): return torch.sum(x, axis)
def counts(ids, n): return torch.bincount(ids, minlength=n).float()
def cholesky(x): return torch.linalg.cholesky(x)
def solve_lower(low, y): return torch.linalg.solve_triangular(low, y[:, None], upper=False)[:, 0]
def diagonal(x): return torch.diagonal(x)
def unit(n): return torch.eye(n)
def logistic_loss(logits, labels): return N.binary_cross_entropy_with_logits(logits, labels)
def maximum(x, least): return torch.clamp(x, min=least)
def stopped(x): return x.detach()
def segment_max(x, ids, n): return x.new_zeros((n, x.shape[1])).scatter_reduce(0, ids[:, None].expand_as(x), x, "amax", include_self=False)
def log_prob(logits, ids): return torch.gather(torch.log_softmax(logits, -1), -1, ids[..., None])[..., 0]
sigmoid, softplus, minimum, clip = torch.sigmoid, N.softplus, torch.minimum, torch.clamp
log, sin, cos, sqrt, where, abs_, stack = torch.log, torch.sin, torch.cos, torch.sqrt, torch.where, torch.abs, torch.stack


def loop(n, step, state):
    for _ in range(n):
        state = step(*state)
    return state


def scan(step, state, xs):
    out = []
    for now in zip(*xs):
        state, y = step(state, now)
        out.append(y)
    return torch.stack(out)


def conv_causal(p, x):
    k = p["kc"].permute(2, 1, 0)
    return N.conv1d(x.transpose(1, 2), k, padding=k.shape[2] - 1, groups=k.shape[0])[..., :x.shape[1]].transpose(1, 2)


def selective_scan(u, time, decay, write, read):
    """What does not wait for the state is computed for all times at once."""
    kept, added = torch.exp(time[..., None] * decay), (time * u)[..., None] * write[:, :, None, :]
    state, out = torch.zeros_like(added[:, 0]), []
    for t in range(u.shape[1]):
        state = kept[:, t] * state + added[:, t]
        out.append(torch.matmul(state, read[:, t, :, None])[..., 0])
    return torch.stack(out, 1)


def ctc(logits, labels):
    n, time = logits.shape[:2]
    lengths = [torch.full((n,), k, dtype=torch.long) for k in (time, labels.shape[1])]
    return N.ctc_loss(torch.log_softmax(logits, -1).transpose(0, 1), labels, *lengths, reduction="none").mean()


def put_row(cache, row, at):
    cache[:, :, at:at + 1] = row
    return cache


def lower_triangle(x):
    i, j = torch.tril_indices(x.shape[1], x.shape[1], -1)
    return x[:, i, j]


def spectral(p, x, modes):
    w = torch.complex(p["real"], p["imag"])
    f = torch.fft.rfft2(x, dim=(2, 3))
    kept = torch.zeros(x.shape[0], w.shape[-1], *f.shape[2:], dtype=f.dtype)
    for k, rows in enumerate((slice(modes), slice(-modes, None))):
        kept[:, :, rows, :modes] = torch.einsum("bixy,xyio->boxy", f[:, :, rows, :modes], w[k])
    return torch.fft.irfft2(kept, x.shape[2:], dim=(2, 3))


def experts(p, x, chosen):
    best, ids = torch.topk(dense(p["gate"], x), chosen)
    weights, y = torch.softmax(best, -1), torch.zeros_like(x)
    for k in range(p["up"]["each"].shape[0]):
        rows, place = torch.where(ids == k)
        z = N.gelu(x[rows] @ p["up"]["each"][k], approximate="tanh") @ p["down"]["each"][k]
        y = y.index_add(0, rows, z * weights[rows, place, None])
    return y


def attention(q, k, v, causal): return N.scaled_dot_product_attention(q, k, v, is_causal=causal)


def recurrent(kind, p, x, width, states):
    zero = x.new_zeros((1, x.shape[0], width))
    weights = [p["x"]["w"], p["h"]["w"], p["x"]["b"], torch.zeros_like(p["x"]["b"])]
    return kind(x, (zero, zero) if states == 2 else zero, weights, True, 1, 0.0, True, False, True)[0]


def lstm(p, x, width): return recurrent(torch.lstm, p, x, width, 2)
def gru(p, x, width): return recurrent(torch.gru, p, x, width, 1)


def cross_entropy(logits, labels):
    return N.cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), labels.reshape(-1))


# ---- steps ---------------------------------------------------------------------------------------------------------------


def kernel(x, transposed=False):
    """[h, w, in, out] as torch wants it: [out, in, h, w], or [in, out, h, w] of a transposed convolution; the same with a depth."""
    sides = tuple(range(x.dim() - 2))
    last = (x.dim() - 2, x.dim() - 1)
    return channels_last(x.permute(*(last if transposed else last[::-1]), *sides))


def channels_last(x):
    return x.contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)


def parameter(name, x, all_of_them, device):
    if isinstance(x, dict):
        return {k: parameter(k, v, all_of_them, device) for k, v in x.items()}
    if isinstance(x, list):
        return [parameter(name, v, all_of_them, device) for v in x]
    x = torch.from_numpy(x)
    if name in ("k", "kd", "kt"):
        x = kernel(x, name == "kt")
    if name == "w":
        x = x.t().contiguous()
    x = x.clone().to(device).requires_grad_()
    all_of_them.append(x)
    return x


def halve(tree):
    if isinstance(tree, (dict, list, tuple)):
        return {k: halve(v) for k, v in tree.items()} if isinstance(tree, dict) else [halve(v) for v in tree]
    return tree.bfloat16() if tree.dtype == torch.float32 else tree


def batch_tensor(x, is_image=None):
    x = torch.from_numpy(x)
    if is_image if is_image is not None else x.dim() in (4, 5):
        x = channels_last(x.permute(0, x.dim() - 1, *range(1, x.dim() - 1)))
    return x.long() if x.dtype == torch.int32 else x


def device_of(mode):
    """The device, and what ends a step there."""
    if mode == "xla":
        import torch_xla
        device = torch_xla.device()
        if os.environ.get("WEFT_DEVICE") and torch_xla.runtime.device_type() == "CPU":
            raise SystemExit("PyTorch/XLA does not find weft, its own CPU would be measured: pip install weft there")
        return device, functools.partial(torch_xla.sync, wait=True)
    if mode == "tpu":
        import torch_tpu  # noqa: F401
        return torch.device("tpu"), torch.accelerator.synchronize
    return torch.device("cpu"), lambda: None


def prepare_training(work, mode):
    import by_torch as F
    device, sync = device_of(mode)
    values, batch = work.values()
    params = []
    tree = parameter("", values, params, device)
    batch = [batch_tensor(x).to(device) for x in batch]
    del values
    o, fused = work.optimizer, device.type == "cpu"
    if o["kind"] == "adam":
        optimizer = torch.optim.Adam(params, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"], fused=fused)
    elif o["kind"] == "momentum":
        optimizer = torch.optim.SGD(params, lr=o["lr"], momentum=o["momentum"], weight_decay=o["decay"], nesterov=True, fused=fused)
    else:
        optimizer = torch.optim.SGD(params, lr=o["lr"], fused=fused)

    def loss(batch):
        return work.net.loss(F, *((halve(tree), *halve(batch)) if work.bf16 else (tree, *batch)))
    if mode == "compile":
        loss = torch.compile(loss)

    def step():
        value = loss(batch)
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        optimizer.step()
        sync()
        return float(value.detach())
    return step, float, dict


def prepare(work, mode):
    import by_torch as F
    if hasattr(work, "net"):
        return prepare_training(work, mode)
    device, sync = device_of(mode)
    inputs = [parameter("", x, [], device) if isinstance(x, (dict, list)) else kernel(torch.from_numpy(x)) if n in work.kernels else
              torch.from_numpy(x.astype(np.int64)) if x.dtype == np.uint32 else batch_tensor(x, n in work.images)
              for n, x in enumerate(work.values())]
    inputs = [x if isinstance(x, (dict, list)) else x.to(device) for x in inputs]
    if work.bf16:
        inputs = halve(inputs)
    if work.grad:
        for x in inputs[:work.grad]:
            x.requires_grad_()
    fn = functools.partial(work.fn, F)
    if mode == "compile":
        fn = torch.compile(fn)

    def compute():
        if not work.grad:
            with torch.no_grad():
                return [fn(*inputs)]
        return torch.autograd.grad(torch.sum(torch.square(fn(*inputs))), inputs[:work.grad])

    def step():
        out = compute()
        sync()
        return out
    return step, lambda out: float(sum(np.abs(x.cpu().double().numpy()).mean() for x in out)), dict
