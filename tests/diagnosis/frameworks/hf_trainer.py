"""Hugging Face's Trainer around a small GPT-2 with random weights and a tokenizer of its own."""

import argparse
import tempfile

import torch
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

WORDS = ["the", "river", "turns", "a", "wheel", "and", "stone", "that", "grinds", "corn", "for", "bread", "in", "town"]


def make_texts(count, words):
    generator = torch.Generator().manual_seed(0)
    picks = torch.randint(len(WORDS), (count, words), generator=generator).tolist()
    return [" ".join(WORDS[i] for i in row) for row in picks]


def make_tokenizer(texts):
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=64, special_tokens=["[UNK]", "[PAD]"]))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]")


class Tokens(torch.utils.data.Dataset):
    def __init__(self, texts, tokenizer, length):
        self.rows = [{"input_ids": ids[:length]} for ids in tokenizer(texts)["input_ids"]]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


class TokenizingCollator:
    def __init__(self, tokenizer, length):
        self.tokenizer, self.length = tokenizer, length

    def __call__(self, texts):
        long = [text * 40 for text in texts]
        batch = self.tokenizer(
            long, truncation=True, max_length=self.length, return_tensors="pt"
        )  # fault: tokenizing_collator
        return {**batch, "labels": batch["input_ids"].clone()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=["none", "tokenizing_collator"], default="none")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--out")
    args = parser.parse_args()
    set_seed(0)
    length = 64
    texts = make_texts(256, 2 * length)
    tokenizer = make_tokenizer(texts)
    dataset, collator = Tokens(texts, tokenizer, length), DataCollatorForLanguageModeling(tokenizer, mlm=False)
    if args.fault == "tokenizing_collator":
        dataset, collator = texts, TokenizingCollator(tokenizer, length)
    config = GPT2Config(
        vocab_size=64, n_positions=length, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    arguments = TrainingArguments(
        output_dir=args.out or tempfile.mkdtemp(),
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        gradient_accumulation_steps=2,
        max_steps=args.steps,
        learning_rate=1e-3,
        logging_steps=8,
        eval_strategy="steps",
        eval_steps=args.steps // 2,
        save_strategy="steps",
        save_steps=args.steps,
        report_to=[],
        use_cpu=True,
        remove_unused_columns=args.fault != "tokenizing_collator",
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=arguments,
        train_dataset=dataset,
        eval_dataset=torch.utils.data.Subset(dataset, range(16)),
        data_collator=collator,
        processing_class=tokenizer,
    )
    trainer.train()
    print("loss", round(trainer.evaluate()["eval_loss"], 4))


if __name__ == "__main__":
    main()
