"""litgpt: its GPT in the shape of a Llama and its own pretraining loop, `litgpt.pretrain.fit`, under Fabric."""

import json
from pathlib import Path

import lightning
import torch
from litgpt import GPT, Config
from litgpt.args import EvalArgs, TrainArgs
from litgpt.pretrain import fit
from litgpt.utils import chunked_cross_entropy
from safetensors.torch import load_file

from training_rivals.chunks import Chunks
from training_rivals.plain_llama import rope_base
from training_rivals.spec import BETAS, CLIP, LOG_EVERY, LR, MIN_LR_RATIO, WEIGHT_DECAY

PACKAGES = ("litgpt", "lightning")
USES = "litgpt.pretrain.fit, litgpt.GPT with tied tables, Fabric 32-true, DataLoader"


def build(spec):
    folder = Path(spec.llama)
    theirs = json.loads((folder / "config.json").read_text())
    model = GPT(config_of(theirs))
    weights = dict(renamed(load_file(folder / "model.safetensors"), theirs["num_hidden_layers"]))
    model.load_state_dict(weights)
    model.transformer.wte.weight = model.lm_head.weight  # as its train.tie_embeddings does
    model.max_seq_length = spec.length
    return model


def config_of(theirs):
    return Config(
        name="equal",
        block_size=theirs["max_position_embeddings"],
        n_layer=theirs["num_hidden_layers"],
        n_embd=theirs["hidden_size"],
        vocab_size=theirs["vocab_size"],
        padded_vocab_size=theirs["vocab_size"],
        norm_class_name="RMSNorm",
        norm_eps=theirs["rms_norm_eps"],
        parallel_residual=False,
        n_head=theirs["num_attention_heads"],
        n_query_groups=theirs["num_key_value_heads"],
        rope_base=int(rope_base(theirs)),
        rotary_percentage=1.0,
        intermediate_size=theirs["intermediate_size"],
        bias=False,
        mlp_class_name="LLaMAMLP",
    )


def renamed(weights, layers):
    table = weights["model.embed_tokens.weight"]
    yield from (("transformer.wte.weight", table), ("lm_head.weight", table))
    yield "transformer.ln_f.weight", weights["model.norm.weight"]
    for i in range(layers):
        theirs, ours = f"model.layers.{i}", f"transformer.h.{i}"
        qkv = [weights[f"{theirs}.self_attn.{name}_proj.weight"] for name in "qkv"]
        yield f"{ours}.attn.qkv.weight", torch.cat(qkv)
        yield f"{ours}.attn.proj.weight", weights[f"{theirs}.self_attn.o_proj.weight"]
        yield f"{ours}.norm_1.weight", weights[f"{theirs}.input_layernorm.weight"]
        yield f"{ours}.norm_2.weight", weights[f"{theirs}.post_attention_layernorm.weight"]
        for name, part in (("gate", "fc_1"), ("up", "fc_2"), ("down", "proj")):
            yield f"{ours}.mlp.{part}.weight", weights[f"{theirs}.mlp.{name}_proj.weight"]


def loss(model, inputs, targets):
    return chunked_cross_entropy(model(inputs), targets)


def train(model, spec):
    fabric = lightning.Fabric(accelerator="cpu", devices=1, precision="32-true")
    model = fabric.setup(model)
    model.train()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=LR, betas=BETAS, weight_decay=WEIGHT_DECAY, **({"fused": True} if spec.fused else {})
    )
    optimizer = fabric.setup_optimizers(optimizer)
    loader = torch.utils.data.DataLoader(Chunks(spec, spec.length + 1), spec.rows, shuffle=True, drop_last=True)
    loader = fabric.setup_dataloaders(loader)
    state = {"model": model, "optimizer": optimizer, "iter_num": 0, "step_count": 0}
    settings = TrainArgs(
        save_interval=None,
        log_interval=LOG_EVERY,
        global_batch_size=spec.rows,
        micro_batch_size=spec.rows,
        lr_warmup_steps=spec.warmup,
        max_tokens=spec.all_steps * spec.tokens_per_step,
        max_norm=CLIP,
        min_lr=LR * MIN_LR_RATIO,
    )
    never = EvalArgs(interval=spec.all_steps + 1, max_iters=1, final_validation=False)
    fit(fabric, 1, state, loader, loader, Path(spec.out), None, settings, never)
