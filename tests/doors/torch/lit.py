"""A LightningModule of people's kind; in a file of its own, since replicas' processes must find its class."""
import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 3))

    def training_step(self, batch, index):
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss, sync_dist=True)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", F.cross_entropy(self.net(batch[0]), batch[1]), sync_dist=True)

    def predict_step(self, batch, index):
        return self.net(batch[0])

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)
