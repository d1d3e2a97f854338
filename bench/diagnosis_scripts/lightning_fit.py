"""A transformer under Lightning's Trainer, the loss in the progress bar."""

import lightning
import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812
from torch.utils.data import DataLoader, TensorDataset

LENGTH, ROWS, WIDTH, VOCAB = 64, 8, 128, 1000


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, VOCAB)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, ids):
        return self.head(self.body(self.embedding(ids), mask=self.mask, is_causal=True))

    def training_step(self, batch, index):
        (ids,) = batch
        loss = F.cross_entropy(self(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-4)


def main():
    lightning.seed_everything(0)
    ids = (torch.arange(8000 * (LENGTH + 1)) * 7919 % VOCAB).view(8000, LENGTH + 1)
    loader = DataLoader(TensorDataset(ids), batch_size=ROWS, shuffle=True)
    trainer = lightning.Trainer(
        max_epochs=1000, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, gradient_clip_val=1.0
    )
    trainer.fit(Model(), loader)


if __name__ == "__main__":
    main()
