"""Programs of the kind people have, each on PyTorch/XLA's device and on PyTorch's CPU in the same run. Prints one JSON object:
{name: [got, want]}, both lists of numbers. Arguments: names of cases; without any, all."""
import copy
import io
import json
import sys
import traceback

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch_xla
import torch_xla.core.xla_model as xm

CASES = {}


def case(fn):
    CASES[fn.__name__] = fn
    return fn


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=1e-2, momentum=0.9)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def losses(model, loss_of, batch, optimizer, steps):
    device = next(model.parameters()).device
    batch = {name: value.to(device) for name, value in batch.items()}
    optimizer = optimizer(model.parameters())
    out = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        if device.type == "xla":
            xm.optimizer_step(optimizer)
            torch_xla.sync()
        else:
            optimizer.step()
        out.append(loss.item())
    return out


def trained(make, loss_of, batch, optimizer=sgd, steps=3):
    torch.manual_seed(0)
    model = make().train()
    twin = copy.deepcopy(model)
    model.to(torch_xla.device())
    if hasattr(model, "tie_weights"):
        model.tie_weights()  # PyTorch/XLA's own words: parameters that are one on the CPU are two after .to(device)
    return losses(model, loss_of, batch, optimizer, steps), losses(twin, loss_of, batch, optimizer, steps)


def classified(model, batch):
    out = model(batch["x"])
    return F.cross_entropy(getattr(out, "logits", out), batch["y"])


def own_loss(model, batch):
    return model(**batch).loss


def images(n, size, classes=10):
    generator = torch.Generator().manual_seed(1)
    return {"x": torch.randn(n, 3, size, size, generator=generator), "y": torch.randint(0, classes, (n,), generator=generator)}


def tokens(n=2, length=16, words=100):
    ids = torch.randint(0, words, (n, length), generator=torch.Generator().manual_seed(2))
    return {"input_ids": ids, "labels": ids}


# ---- models ----


@case
def perceptron():
    return trained(lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10)), classified,
                   images(8, 8), adamw, 4)


@case
def resnet():
    from transformers import ResNetConfig, ResNetForImageClassification
    config = ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=10)
    return trained(lambda: ResNetForImageClassification(config), classified_pixels, images(4, 32))


def classified_pixels(model, batch):
    return F.cross_entropy(model(pixel_values=batch["x"]).logits, batch["y"])


@case
def vit():
    from transformers import ViTConfig, ViTForImageClassification
    config = ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=32, patch_size=8,
                       hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=10)
    return trained(lambda: ViTForImageClassification(config), classified_pixels, images(4, 32), adamw)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 24, num_layers=2, batch_first=True)
        self.out = nn.Linear(24, 10)

    def forward(self, x):
        return self.out(self.lstm(self.words(x))[0][:, -1])


@case
def lstm():
    generator = torch.Generator().manual_seed(3)
    batch = {"x": torch.randint(0, 50, (4, 7), generator=generator), "y": torch.randint(0, 10, (4,), generator=generator)}
    return trained(Tagger, classified, batch)


def gpt2_config():
    from transformers import GPT2Config
    return GPT2Config(vocab_size=100, n_positions=32, n_embd=32, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                      bos_token_id=1, eos_token_id=1)


@case
def gpt2():
    from transformers import GPT2LMHeadModel
    return trained(lambda: GPT2LMHeadModel(gpt2_config()), own_loss, tokens(), adamw)


@case
def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=100, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=32)
    return trained(lambda: LlamaForCausalLM(config), own_loss, tokens(), adamw)


@case
def bert():
    from transformers import BertConfig, BertForMaskedLM
    config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                        max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return trained(lambda: BertForMaskedLM(config), own_loss, tokens(), adamw)


@case
def generate():
    from transformers import GPT2LMHeadModel
    torch.manual_seed(0)
    model = GPT2LMHeadModel(gpt2_config()).eval()
    prompt = tokens(1, 5)["input_ids"]
    how = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 1}
    want = model.generate(prompt, **how)[0].tolist()
    device = torch_xla.device()
    return model.to(device).generate(prompt.to(device), **how)[0].tolist(), want


# ---- what programs call ----


def values(*tensors):
    parts = (torch.view_as_real(t) if t.is_complex() else t for t in (t.detach().cpu() for t in tensors))
    return [x for t in parts for x in t.double().flatten().tolist()]


def on_both(fn, *inputs):
    device = torch_xla.device()
    return values(*fn(*(x.to(device) for x in inputs))), values(*fn(*inputs))


@case
def linear_algebra():
    a = torch.randn(2, 5, 5, generator=torch.Generator().manual_seed(4)).double()
    s = a @ a.mT + torch.eye(5).double()
    b = torch.ones(2, 5, 2).double()

    def fn(a, s, b):
        q, r = torch.linalg.qr(a)
        sign, log = torch.linalg.slogdet(s)
        w, v = torch.linalg.eigh(s)
        return (torch.linalg.inv(a), torch.linalg.det(a), sign, log, w, v @ torch.diag_embed(w) @ v.mT, q @ r, torch.linalg.cholesky(s),
                torch.linalg.solve(a, b), torch.linalg.svdvals(a))
    return on_both(fn, a, s, b)


@case
def least_squares():
    a = torch.randn(6, 3, generator=torch.Generator().manual_seed(5))
    return on_both(lambda a, b: (torch.linalg.lstsq(a, b).solution,), a, torch.ones(6, 2))


@case
def indexing():
    x = torch.randn(4, 9, generator=torch.Generator().manual_seed(6))

    def fn(x):
        top, where = torch.topk(x, 3)
        sums = torch.zeros(4, 3, device=x.device).scatter_add(1, where % 3, top)
        return torch.sort(x, 1)[0], top, torch.cumsum(x, 1), x[x > 0], sums, F.interpolate(x[None, None], scale_factor=2.0), x.argmax(1)
    return on_both(fn, x)


def with_gradients(fn, *inputs):
    """What fn makes of the inputs, and gradients of the sum of its cosines."""
    def run(*inputs):
        inputs = [x.requires_grad_() for x in inputs]
        out = fn(*inputs)
        sum(torch.cos(y).sum() for y in out).backward()
        return *out, *(x.grad for x in inputs)
    device = torch_xla.device()
    return values(*run(*(x.detach().to(device) for x in inputs))), values(*run(*(x.detach().clone() for x in inputs)))


@case
def otherwise_here():
    """Kernels of PyTorch/XLA that compute something else than PyTorch's, or refuse (weft.torch.kernels)."""
    def fn(x, rows, z):
        images = x[None]
        frozen = F.batch_norm(images, rows.detach()[0, 0, 1:], rows.detach()[0, 1, 1:].abs(), rows[0, 0, :4], None, False)
        return (F.elu(x), F.selu(x, inplace=False), F.celu(x, 2.0), frozen, torch.norm(x, float("inf"), 1), torch.norm(rows, float("-inf")), torch.norm(rows, "fro"),
                rows.norm(dim=2),
                torch.clamp(x, max=rows[0, :, :1, None]), torch.linalg.pinv(rows), torch.linalg.matrix_norm(rows, "nuc"),
                F.max_pool2d(images, 3, 2, 1, dilation=2), F.avg_pool2d(images, 3, 1, 1, True, False, 2),
                *(F.interpolate(images, scale_factor=s, mode=m) for s in (0.6, 1.7) for m in ("nearest", "bilinear")),
                torch.view_as_real(torch.linalg.inv(z)))
    generator = torch.Generator().manual_seed(8)
    return with_gradients(fn, torch.randn(4, 4, 9, 9, generator=generator)[0], 0.4 * torch.randn(3, 4, 5, generator=generator) + torch.eye(4, 5),
                          torch.randn(3, 3, dtype=torch.cfloat, generator=generator))


@case
def scattered():
    """On a TPU PyTorch/XLA compares each index with each place, and takes 0 for what does not go there."""
    generator = torch.Generator().manual_seed(10)
    to = torch.randint(0, 5, (9, 3), generator=generator)

    def fn(x, edges):
        at, nowhere = to.to(x.device), torch.full((7, 3), -float("inf"), device=x.device)
        most = nowhere.scatter_reduce(0, at, edges, "amax")
        soft = torch.exp(edges - most.gather(0, at))
        fewer = x.detach().scatter_reduce(0, at[:4, :2], edges.detach(), "amax")
        return (*(x.scatter_reduce(0, at, edges, r) for r in ("sum", "prod", "amax", "amin", "mean")), soft, fewer, most.isinf())
    return with_gradients(fn, -1.5 - torch.rand(7, 3, generator=generator), -1 - torch.rand(9, 3, generator=generator))


@case
def windows():
    """Means whose last windows go past the padding: by the elements there are, or a divisor."""
    def fn(x):
        return (F.avg_pool2d(x, 3, 2, 1, True, True), F.avg_pool2d(x, 3, 2, 0, True, True, 2), F.avg_pool2d(x, 4, 3, 1, True, False, 7),
                F.avg_pool2d(x, (3, 2), (2, 1), (1, 0), True, False), F.avg_pool3d(x[None], 2, 2, 1, True), F.avg_pool3d(x[None], 2, 3, 1, True, False, 5),
                F.avg_pool1d(x[0], 4, 3, 2, True, False))
    return with_gradients(fn, torch.randn(3, 4, 8, 9, generator=torch.Generator().manual_seed(11)))


@case
def of_complex_numbers():
    z = torch.randn(3, 7, dtype=torch.cfloat, generator=torch.Generator().manual_seed(12))

    def fn(z):
        info = torch.linalg.inv_ex(torch.stack([z[:, :3], z[:, 3:6]])).info
        assert info.shape == (2,) and info.dtype == torch.int32
        return torch.cov(z), torch.corrcoef(z), torch.cov(z[0], correction=0), info
    return on_both(fn, z)


@case
def packed():
    """Texts of different lengths; an instance norm's running numbers."""
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.norm, self.out = nn.LSTM(6, 8, batch_first=True), nn.InstanceNorm1d(8, track_running_stats=True), nn.Linear(8, 10)

        def forward(self, x):
            rows = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 7, 5]), batch_first=True, enforce_sorted=False)
            states = nn.utils.rnn.pad_packed_sequence(self.lstm(rows)[0], batch_first=True)[0]
            return self.out(self.norm(states.mT).mean(2)) + self.norm.running_var.sum()
    generator = torch.Generator().manual_seed(9)
    return trained(Reader, classified, {"x": torch.randn(3, 7, 6, generator=generator), "y": torch.arange(3)})


@case
def counted():
    """Integers too, as on CUDA, without leaving the device."""
    x = torch.tensor([0, 3, 1, 3, 7])
    got = torch.histc(x.to(torch_xla.device()), bins=4, min=0, max=3)
    many = torch.count_nonzero(x.float().to(got.device))
    assert got.dtype == x.dtype and many.dtype == torch.int64
    return values(got, torch.histc(x.to(torch_xla.device()).float(), 5)), values(torch.histc(x.float(), 4, 0, 3), torch.histc(x.float(), 5))


@case
def autocast():
    """bfloat16 where PyTorch's CPU has it as well: both are far from float32, and close to each other."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    x = torch.randn(16, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        want = model(x)
    device = torch_xla.device()
    model.to(device)
    with torch.autocast("xla", dtype=torch.bfloat16):
        got = model(x.to(device))
    assert got.dtype == torch.bfloat16
    from torch_xla.amp import autocast as xla_autocast
    with xla_autocast(device):
        again = model(x.to(device))
    assert again.dtype == torch.bfloat16
    return [round(v, 1) for v in values(got - again)] + [((got.cpu() - want).abs().max() < 0.02).item()], [0.0] * got.numel() + [True]


@case
def checkpointed():
    """What is computed again stays apart from what was computed before, and draws the same random numbers."""
    from torch.utils.checkpoint import checkpoint
    device, out = torch_xla.device(), []
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Dropout(0.5), nn.Linear(32, 4)).to(device)
    for run in (model, lambda x: checkpoint(model, x, use_reentrant=True), lambda x: checkpoint(model, x, use_reentrant=False)):
        xm.set_rng_state(5)
        x = torch.ones(16, 8, device=device, requires_grad=True)
        (run(x) ** 2).sum().backward()
        text = torch_xla._XLAC._get_xla_tensors_hlo([x.grad])
        out.append([("opt-barrier" in text), text.count(" tanh("), *values(x.grad)])
    plain, *again = out
    return [x for o in again for x in o], [True, 2, *plain[2:]] * 2


@case
def compiled():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    x = torch.randn(3, 16)
    want = values(model(x))
    model = torch.compile(model.to(torch_xla.device()), backend="openxla")
    with torch.no_grad():
        return values(model(x.to(torch_xla.device())), model(x.to(torch_xla.device()))), want * 2


@case
def saved():
    torch.manual_seed(0)
    model = nn.Linear(4, 3).to(torch_xla.device())
    file = io.BytesIO()
    xm.save(model.state_dict(), file)
    file.seek(0)
    state = torch.load(file)
    assert state["weight"].device.type == "cpu"
    other = nn.Linear(4, 3).to(torch_xla.device())
    other.load_state_dict(state)
    return values(other.weight, other.bias), values(state["weight"], state["bias"])


class Spectral(nn.Module):
    """A layer of a Fourier neural operator, and a norm whose running numbers are used afterwards."""

    def __init__(self):
        super().__init__()
        self.weight, self.norm = nn.Parameter(torch.randn(3, 4, 5, dtype=torch.cfloat) * 0.2), nn.BatchNorm1d(4)

    def forward(self, x):
        z = torch.einsum("bic,ioc->boc", torch.fft.rfft(x)[:, :, :5], self.weight)
        return self.norm(torch.fft.irfft(z, n=16)) + z.abs().mean()


@case
def spectral():
    generator = torch.Generator().manual_seed(4)
    batch = {"x": torch.randn(4, 3, 16, generator=generator), "y": torch.randn(4, 4, 16, generator=generator)}
    used = []

    def loss_of(model, batch):
        used[:] = [*used[-1:], model] if used[-1:] != [model] else used
        return F.mse_loss(model(batch["x"]), batch["y"])
    outs = trained(Spectral, loss_of, batch)
    for out, model in zip(outs, used):
        with torch.inference_mode():
            out += model.eval()(batch["x"].to(model.weight.device)).flatten().tolist()
    return outs


@case
def loader():
    from torch_xla.distributed.parallel_loader import MpDeviceLoader
    data = torch.utils.data.TensorDataset(torch.arange(12.0))
    batches = MpDeviceLoader(torch.utils.data.DataLoader(data, batch_size=5), torch_xla.device())
    return [x.sum().item() for x, in batches], [10.0, 35.0, 21.0]


@case
def memory():
    """A parameter that is updated in place takes its memory once."""
    x = torch.zeros(1 << 20).to(torch_xla.device())
    torch_xla.sync(wait=True)
    before = xm.get_memory_info(torch_xla.device())
    for _ in range(3):
        x.add_(1.0)
        torch_xla.sync(wait=True)
    after = xm.get_memory_info(torch_xla.device())
    assert after["bytes_used"] < after["bytes_limit"]
    return [after["bytes_used"] - before["bytes_used"], x[0].item()], [0, 3.0]


def main(names):
    out = {}
    for name in names or CASES:
        try:
            out[name] = CASES[name]()
        except Exception:  # the others still count
            out[name] = traceback.format_exc()
        print(name, "done", file=sys.stderr, flush=True)
    print(json.dumps(out))


if __name__ == "__main__":
    main(sys.argv[1:])
