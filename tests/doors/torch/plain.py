"""A script as people write them for "cuda": it knows nothing of PyTorch/XLA. Prints its losses as JSON."""
import json

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 16, 10))
data = torch.utils.data.TensorDataset(torch.randn(32, 1, 8, 8), torch.randint(0, 10, (32,)))
model.to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
losses = []
for epoch in range(2):
    for x, y in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, pin_memory=True):
        x, y = x.to(device, non_blocking=True), y.to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
if device.type == "cuda":
    torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() > 0
print(json.dumps(losses))
