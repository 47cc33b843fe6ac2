"""A script for "cuda" with scaled gradients, a fused optimizer and its questions about memory. Prints its losses as JSON."""
import json

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 16, 10))
data = torch.utils.data.TensorDataset(torch.randn(32, 1, 8, 8), torch.randint(0, 10, (32,)))
model.to(device)
on_gpu = device.type == "cuda"
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=on_gpu)
scaler = torch.amp.GradScaler("cuda", enabled=on_gpu)
losses = []
for epoch in range(2):
    for x, y in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, pin_memory=True):
        x, y = x.to(device, non_blocking=True), y.to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
if on_gpu:
    torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() > 0 and "Allocated memory" in torch.cuda.memory_summary()
print(json.dumps(losses))
