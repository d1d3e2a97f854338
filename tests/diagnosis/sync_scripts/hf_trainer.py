"""Hugging Face's Trainer around a small Llama, with its own device handling and logging in every step."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

config = LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, head_dim=16
)
rows = [{"input_ids": torch.randint(64, (16,)), "labels": torch.randint(64, (16,))} for _ in range(64)]
arguments = TrainingArguments(
    output_dir=sys.argv[1],
    per_device_train_batch_size=4,
    max_steps=12,
    logging_steps=1,
    save_strategy="no",
    report_to=[],
    disable_tqdm=True,
)
trainer = Trainer(model=LlamaForCausalLM(config), args=arguments, train_dataset=rows)
trainer.train()
