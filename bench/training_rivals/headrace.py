"""Headrace's Trainer and transformer, with the Recorder that `headrace train` has: events and TensorBoard files."""

import shutil
from pathlib import Path

from headrace.loading import Loader
from headrace.models import import_llama
from headrace.training import Recorder, TrainConfig, Trainer
from training_rivals.spec import BETAS, CLIP, LOG_EVERY, LR, MIN_LR_RATIO, WEIGHT_DECAY

PACKAGES = ("headrace",)
USES = "Trainer, own transformer, Loader, Recorder with TensorBoard"


def build(spec):
    return import_llama(spec.llama)


def loss(model, inputs, targets):
    return model(inputs, targets)


def train(model, spec):
    out = Path(spec.out)
    shutil.rmtree(out, ignore_errors=True)
    trainer = make_trainer(model, spec, out)
    with Recorder(out, curves=False) as recorder:
        trainer.listen(recorder)
        trainer.run()
    shutil.rmtree(out)


def make_trainer(model, spec, out, **settings):
    never = spec.all_steps + 1
    config = TrainConfig(
        steps=spec.all_steps,
        out=out,
        lr=LR,
        min_lr_ratio=MIN_LR_RATIO,
        warmup=spec.warmup,
        weight_decay=WEIGHT_DECAY,
        beta1=BETAS[0],
        beta2=BETAS[1],
        clip=CLIP,
        precision="fp32",
        device="cpu",
        compile=False,
        log_every=LOG_EVERY,
        eval_every=never,
        checkpoint_every=never,
        **settings,
    )
    return Trainer(model, Loader(spec.dataset, seq_len=spec.length, batch_size=spec.rows), config)
