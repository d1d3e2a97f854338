"""Where the loop is a framework's, its settings are what can be changed: they take the place of lines of a loop."""

from __future__ import annotations

import re

from headrace.diagnosis.evidence import Evidence
from headrace.diagnosis.report import Fix

TRANSFORMERS = {
    "too_few_workers": "TrainingArguments(dataloader_num_workers={workers}, dataloader_persistent_workers=True)",
    "too_many_workers": "TrainingArguments(dataloader_num_workers={workers})",
    "blocking_copies": 'TrainingArguments(dataloader_pin_memory=True, accelerator_config={{"non_blocking": True}})',
    "unpinned_memory": "TrainingArguments(dataloader_pin_memory=True)",
    "sync_in_loop": "TrainingArguments(logging_steps=100, logging_nan_inf_filter=False)",
    "logging_in_loop": "TrainingArguments(logging_steps=100)",
    "eager_optimizer": 'TrainingArguments(optim="adamw_torch_fused")',
    "evaluation_stalls": "TrainingArguments(eval_steps=..., per_device_eval_batch_size=...)",
    "checkpoint_stalls": "TrainingArguments(save_steps=..., save_only_model=True)",
}
LIGHTNING = {
    "sync_in_loop": "Trainer(log_every_n_steps=100), and self.log(..., prog_bar=False): a progress bar reads them",
    "logging_in_loop": "Trainer(log_every_n_steps=100)",
    "evaluation_stalls": "Trainer(val_check_interval=..., limit_val_batches=...)",
    "checkpoint_stalls": "ModelCheckpoint(every_n_train_steps=..., save_weights_only=True)",
}
SETTINGS = {"transformers": TRANSFORMERS, "lightning": LIGHTNING}
PARTS = {"transformers": ("transformers/", "accelerate/"), "lightning": ("lightning/", "pytorch_lightning/")}
ALWAYS = ("evaluation_stalls", "checkpoint_stalls")  # the framework decides when, whoever writes what is done


def with_setting(evidence: Evidence, fix: Fix) -> str:
    """The advice, with the framework's setting in it if the framework is what does it."""
    setting = SETTINGS.get(evidence.framework, {}).get(fix.rule)
    if setting is None or not (fix.rule in ALWAYS or _inside(evidence.framework, fix)):
        return fix.advice
    workers = re.search(r"num_workers=(\d+)", fix.advice)
    return f"{fix.advice.splitlines()[0]}\n{setting.format(workers=workers[1] if workers else 1)}"


def _inside(framework: str, fix: Fix) -> bool:
    """Whether the line that the fix names goes through the framework to what it is about."""
    what = fix.site.what if fix.site else ""
    return any(f"({part}" in what for part in PARTS[framework])
