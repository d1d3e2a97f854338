"""A GPT-2 of 4 layers under transformers' Trainer, with what it does by default."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

LENGTH, ROWS = 64, 8


class Rows(Dataset):
    def __init__(self, count):
        self.ids = (torch.arange(count * LENGTH) * 7919 % 1000).view(count, LENGTH)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


def main():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=1000, n_positions=LENGTH, n_embd=128, n_layer=4, n_head=4)
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            folder, per_device_train_batch_size=ROWS, max_steps=1_000_000, logging_steps=10, save_strategy="no",
            report_to="none", use_cpu=True,
        )  # fmt: skip
        Trainer(GPT2LMHeadModel(config), settings, train_dataset=Rows(10_000)).train()


if __name__ == "__main__":
    main()
