"""Programs that leave the loop to a library: Lightning, accelerate, the Trainer of transformers. Each prints what it got as JSON; without
WEFT_DEVICE it is the truth, on PyTorch's CPU with the batches of all replicas as one: trainers.py NAME REPLICAS FOLDER."""
import json
import os
import pathlib
import sys
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

CASES = {}


def case(fn):
    CASES[fn.__name__] = fn
    return fn


def rows(n=32):
    generator = torch.Generator().manual_seed(1)
    return torch.utils.data.TensorDataset(torch.randn(n, 6, generator=generator), torch.randint(0, 3, (n,), generator=generator))


def numbers(module):
    return [v for p in module.state_dict().values() for v in p.detach().cpu().flatten().tolist()]


class Merged:
    """The batches of all replicas as one, as Lightning cuts and shuffles them: another order in each epoch."""

    def __init__(self, replicas, size):
        self.parts = [torch.utils.data.DistributedSampler(rows(), replicas, rank, shuffle=True) for rank in range(replicas)]
        self.size, self.epoch = size // replicas, 0

    def __iter__(self):
        for part in self.parts:
            part.set_epoch(self.epoch)
        self.epoch += 1
        orders = [list(part) for part in self.parts]
        for i in range(0, len(orders[0]), self.size):
            yield [x for order in orders for x in order[i:i + self.size]]


@case
def lightning(replicas, folder, on_device):
    """Trainer.fit with validation and a checkpoint, then predict."""
    import lightning as L
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lit import Net

    def loader():
        return torch.utils.data.DataLoader(rows(), batch_size=16 // (replicas if on_device else 1))
    train = loader() if on_device or replicas == 1 else torch.utils.data.DataLoader(rows(), batch_sampler=Merged(replicas, 16))
    torch.manual_seed(0)
    model, saved = Net(), ModelCheckpoint(folder, filename="best", monitor="val_loss")
    trainer = L.Trainer(max_epochs=3, gradient_clip_val=0.5 if replicas == 1 else None, callbacks=[saved], logger=False, enable_progress_bar=False,
                        enable_model_summary=False)
    trainer.fit(model, train, loader())
    out = {"weights": numbers(model), **{k: v.item() for k, v in trainer.callback_metrics.items()}}
    state = torch.load(pathlib.Path(folder) / "best.ckpt", map_location="cpu", weights_only=False)
    out["saved"] = [v for p in state["state_dict"].values() for v in p.flatten().tolist()]
    if replicas == 1:
        out["predicted"] = torch.cat(trainer.predict(model, loader())).cpu().flatten().tolist()
    return out


def with_accelerate(replicas, on_device):
    from accelerate import Accelerator
    from accelerate.utils import set_seed
    # accelerate and PyTorch/XLA's loader do not agree among replicas on where data end: no accumulation and no remainder there
    accelerator = Accelerator(gradient_accumulation_steps=2 if replicas == 1 else 1)
    set_seed(0)
    model = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
    each = 8 // (replicas if on_device else 1)
    train = torch.utils.data.DataLoader(rows(), batch_size=each)
    uneven = torch.utils.data.DataLoader(rows(27 if replicas == 1 else 32), batch_size=each)
    model, optimizer, train, uneven = accelerator.prepare(model, optimizer, train, uneven)
    losses, outs = [], []
    for _ in range(2):
        for x, y in train:
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather(loss.detach()).mean().item())
    model.eval()
    for x, y in uneven:
        with torch.no_grad():
            outs += accelerator.gather_for_metrics((model(x), y))[0].flatten().tolist()
    accelerator.wait_for_everyone()
    return {"losses": losses, "outs": outs, "weights": numbers(accelerator.unwrap_model(model))}


def accelerated_replica(index, replicas, folder):
    (pathlib.Path(folder) / f"{index}.json").write_text(json.dumps(with_accelerate(replicas, True)))


@case
def accelerate(replicas, folder, on_device):
    """Accumulated and clipped gradients, and a last batch that is gathered without what fills it."""
    if replicas == 1 or not on_device:
        return with_accelerate(replicas, on_device)
    import torch_xla
    torch_xla.launch(accelerated_replica, args=(replicas, folder))
    first, *others = [json.loads((pathlib.Path(folder) / f"{i}.json").read_text()) for i in range(replicas)]
    assert all(other == first for other in others)
    return first


@case
def trainer(replicas, folder, on_device):
    """The Trainer of transformers, which takes the device that it finds."""
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
    config = BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=3,
                        max_position_embeddings=32, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    generator = torch.Generator().manual_seed(2)
    data = [{"input_ids": torch.randint(0, 100, (12,), generator=generator), "labels": i % 3} for i in range(24)]
    torch.manual_seed(0)
    model = BertForSequenceClassification(config)
    made = Trainer(model, TrainingArguments(folder, per_device_train_batch_size=8, num_train_epochs=2, report_to=[], logging_steps=1,
                                            save_strategy="no", disable_tqdm=True, seed=3), train_dataset=data, eval_dataset=data)
    made.train()
    losses = [row["loss"] for row in made.state.log_history if "loss" in row]
    return {"losses": losses, "eval": made.evaluate()["eval_loss"], "outs": made.predict(data).predictions.flatten().tolist()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    on_device = bool(os.environ.get("WEFT_DEVICE"))
    got = CASES[sys.argv[1]](int(sys.argv[2]), sys.argv[3], on_device)
    if on_device:
        import torch_xla
        got["device"] = torch_xla.device().type
    print("\n" + json.dumps(got))
