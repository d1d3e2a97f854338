"""Hugging Face: Trainer with LlamaForCausalLM, its defaults for the optimizer and for attention."""

import transformers

from training_rivals.chunks import Chunks
from training_rivals.spec import BETAS, CLIP, LOG_EVERY, LR, MIN_LR_RATIO, WEIGHT_DECAY

PACKAGES = ("transformers", "accelerate")
USES = "Trainer, LlamaForCausalLM with sdpa, its default AdamW, its DataLoader in the process"


def build(spec):
    return transformers.LlamaForCausalLM.from_pretrained(spec.llama, dtype="float32")


def loss(model, inputs, targets):
    return model(input_ids=inputs, labels=targets, shift_labels=targets).loss


def train(model, spec):
    arguments = transformers.TrainingArguments(
        output_dir=spec.out,
        use_cpu=True,
        per_device_train_batch_size=spec.rows,
        max_steps=spec.all_steps,
        learning_rate=LR,
        lr_scheduler_type="cosine_with_min_lr",
        lr_scheduler_kwargs={"min_lr_rate": MIN_LR_RATIO},
        warmup_steps=spec.warmup,
        weight_decay=WEIGHT_DECAY,
        adam_beta1=BETAS[0],
        adam_beta2=BETAS[1],
        max_grad_norm=CLIP,
        logging_steps=LOG_EVERY,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    transformers.Trainer(model, arguments, train_dataset=Rows(spec, spec.length)).train()


class Rows(Chunks):
    """The model moves the labels itself, so the last token of a row has no target: 1 in 512."""

    def __getitem__(self, index):
        row = super().__getitem__(index)
        return {"input_ids": row, "labels": row}
