"""A step that is too large for a TPU v5e; then recordings by PyTorch/XLA's profiler: of a session into argv[1]/session, by its server into
argv[1]/served. Prints what was counted and what was said, as JSON."""
import json
import sys
import threading

import torch
import torch.nn as nn
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.debug.profiler as xp

DEVICE, PORT = torch_xla.device(), 9412


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(256, width), nn.GELU(), nn.Linear(width, 256)

    def forward(self, x):
        h = self.up(x)  # the widest
        return self.down(self.act(h))


def step(model, rows):
    with xp.StepTrace("train"):
        with xp.Trace("forward"):
            loss = model(torch.ones(rows, 256, device=DEVICE)).sum()
        loss.backward()
        xm.optimizer_step(torch.optim.SGD(model.parameters(), lr=0.1))


try:
    step(Net(1 << 17).to(DEVICE), 1 << 15)
    said = ""
except ValueError as e:
    said = str(e)
model, server = Net(512).to(DEVICE), xp.start_server(PORT)
step(model, 64)
xp.start_trace(sys.argv[1] + "/session")
for _ in range(3):
    step(model, 64)
xp.stop_trace()
served = threading.Thread(target=xp.trace, args=(f"localhost:{PORT}", sys.argv[1] + "/served"), kwargs={"duration_ms": 2000})
served.start()
while served.is_alive():
    step(model, 64)
print(json.dumps({"said": said, "compiled": met.counter_value("UncachedCompile"), "report": met.metrics_report()}))
