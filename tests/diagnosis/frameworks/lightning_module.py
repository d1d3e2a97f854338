"""A LightningModule with DataLoaders for training and validation, a learning-rate schedule and a CSV log."""

import argparse
import tempfile

import lightning as L  # noqa: N812
import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, Dataset

VOCAB, LENGTH, WIDTH = 64, 64, 64


class Counting(Dataset):
    """Rows that count upwards from a random number."""

    def __init__(self, rows, slow=False):
        self.starts = torch.randint(VOCAB, (rows,), generator=torch.Generator().manual_seed(0))
        self.slow = slow

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, index):
        if self.slow:
            sum(number * number for number in range(40_000))  # fault: slow_dataset
        return (self.starts[index] + torch.arange(LENGTH + 1)) % VOCAB


class LanguageModel(L.LightningModule):
    def __init__(self, fault):
        super().__init__()
        self.fault = fault
        self.table = nn.Embedding(VOCAB, WIDTH)
        self.body = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCAB)

    def forward(self, ids):
        return self.head(self.body(self.table(ids))[0])

    def training_step(self, batch, batch_idx):
        logits = self(batch[:, :-1])
        losses = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten(), reduction="none")
        if self.fault == "item_per_token":
            self.seen = [loss.item() for loss in losses]  # fault: item_per_token
        loss = losses.mean()
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        logits = self(batch[:, :-1])
        self.log("val_loss", F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten()))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=["none", "item_per_token", "slow_dataset"], default="none")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out")
    args = parser.parse_args()
    L.seed_everything(0, verbose=False)
    out = args.out or tempfile.mkdtemp()
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_steps=args.steps,
        val_check_interval=args.steps // 2,
        log_every_n_steps=10,
        default_root_dir=out,
        logger=CSVLogger(out),
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    train = DataLoader(Counting(16 * args.steps, args.fault == "slow_dataset"), batch_size=16, shuffle=True)
    model = LanguageModel(args.fault)
    trainer.fit(model, train, DataLoader(Counting(32), batch_size=16))
    print("loss", round(float(trainer.callback_metrics["val_loss"]), 3))


if __name__ == "__main__":
    main()
