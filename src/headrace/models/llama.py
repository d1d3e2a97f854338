"""Our transformer as a Llama folder of Hugging Face, and back. The weights are the same ones under other names."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor, nn

from headrace.errors import MissingDependency, UsageError
from headrace.files import disk_full_named, write_atomically
from headrace.models.transformer import Transformer, TransformerConfig
from headrace.tokenizers import Special, Tokenizer, load_tokenizer

SHARD_BYTES = 5_000_000_000

NAMES = {
    "embedding.weight": "model.embed_tokens.weight",
    "norm.weight": "model.norm.weight",
    "head.weight": "lm_head.weight",
}
NAMES_IN_BLOCK = {
    "attention_norm.weight": "input_layernorm.weight",
    "attention.q.weight": "self_attn.q_proj.weight",
    "attention.k.weight": "self_attn.k_proj.weight",
    "attention.v.weight": "self_attn.v_proj.weight",
    "attention.out.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn.gate.weight": "mlp.gate_proj.weight",
    "ffn.up.weight": "mlp.up_proj.weight",
    "ffn.down.weight": "mlp.down_proj.weight",
}


def export_safetensors(model: nn.Module, path: str | Path, *, shard_bytes: int = SHARD_BYTES) -> None:
    """Any model's weights under their own names: into a folder, or into NAME.safetensors.

    More than `shard_bytes` become NAME-00001-of-00003.safetensors and so on, with NAME.safetensors.index.json.
    """
    path = Path(path)
    folder, stem = (path.parent, path.stem) if path.suffix == ".safetensors" else (path, "model")
    _save(dict(model.state_dict()), folder, stem, shard_bytes)


def export_llama(
    model: Transformer,
    folder: str | Path,
    *,
    tokenizer: Tokenizer | str | Path | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """A folder for transformers.AutoModelForCausalLM.from_pretrained, with the tokenizer of a dataset if one is given.

    config.json is removed first and written last: a folder that was cut off in between cannot be loaded by mistake.
    """
    if not isinstance(model, Transformer):
        raise UsageError(f"{type(model).__name__} cannot be a Llama: only the transformer can. Use export_safetensors.")
    folder = Path(folder)
    (folder / "config.json").unlink(missing_ok=True)
    weights = {_llama_name(name): tensor for name, tensor in model.state_dict().items()}
    _save(weights, folder, "model", shard_bytes)
    special = Special()
    if tokenizer is not None:
        loaded = tokenizer if isinstance(tokenizer, Tokenizer) else load_tokenizer(tokenizer)
        _copy_tokenizer(loaded, folder, model.context)
        special = loaded.special
    config = _llama_config(model.config, model.embedding.weight.dtype, special)
    write_atomically(folder / "config.json", _json(config))


def import_llama(folder: str | Path, *, device: str | torch.device | None = None) -> Transformer:
    """The transformer that a Llama folder holds, in the type it was saved in."""
    folder = Path(folder)
    try:
        config = _our_config(msgspec.json.decode((folder / "config.json").read_bytes()))
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{folder} is not a Llama folder: config.json cannot be read ({error}).") from error
    with torch.device("meta"):
        model = Transformer(config)
    found = _load(folder, device)
    weights = {ours: found[theirs] for ours in model.state_dict() if (theirs := _llama_name(ours)) in found}
    missing = model.state_dict().keys() - weights.keys()
    if missing:
        raise UsageError(f"{folder} lacks {_llama_name(min(missing))}: its weights are not those of its config.json.")
    model.load_state_dict(weights, assign=True)
    return model


def _llama_name(name: str) -> str:
    found = re.fullmatch(r"blocks\.(\d+)\.(.+)", name)
    return f"model.layers.{found[1]}.{NAMES_IN_BLOCK[found[2]]}" if found else NAMES[name]


def _llama_config(config: TransformerConfig, dtype: torch.dtype, special: Special) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": config.vocab_size,
        "hidden_size": config.width,
        "intermediate_size": config.ffn,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.groups,
        "head_dim": config.head_width,
        "hidden_act": "silu",
        "max_position_embeddings": config.context,
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_base,  # where transformers 4 looks; 5 reads the next line
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rope_base},
        "tie_word_embeddings": config.tied,
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": str(dtype).removeprefix("torch."),
        "bos_token_id": special.bos,
        "eos_token_id": special.eos,
        "pad_token_id": special.pad,
    }


def _our_config(config: dict[str, Any]) -> TransformerConfig:
    rope = {
        "rope_theta": 10_000.0,
        **config,
        **(config.get("rope_scaling") or {}),
        **(config.get("rope_parameters") or {}),
    }
    kind = rope.get("rope_type", rope.get("type", "default"))
    width, heads = config["hidden_size"], config["num_attention_heads"]
    strange = {
        "model_type": config.get("model_type") != "llama",
        "hidden_act": config.get("hidden_act", "silu") != "silu",
        "attention_bias": bool(config.get("attention_bias")),
        "mlp_bias": bool(config.get("mlp_bias")),
        "head_dim": (config.get("head_dim") or width // heads) != width // heads,
        "rope_type": kind != "default",
    }
    if any(strange.values()):
        name = next(name for name, wrong in strange.items() if wrong)
        value = kind if name == "rope_type" else config.get(name)
        raise UsageError(f"config.json has {name} {value!r}, which our transformer has not: it cannot be loaded.")
    return TransformerConfig(
        vocab_size=config["vocab_size"],
        context=config["max_position_embeddings"],
        width=width,
        layers=config["num_hidden_layers"],
        heads=heads,
        kv_heads=config.get("num_key_value_heads"),
        ffn=config["intermediate_size"],
        rope_base=float(rope["rope_theta"]),
        norm_eps=config["rms_norm_eps"],
        tied=config.get("tie_word_embeddings", False),
    )


def _copy_tokenizer(tokenizer: Tokenizer, folder: Path, context: int) -> None:
    """Its files, the main one under the name that transformers looks for."""
    usual = {"hf": "tokenizer.json", "sentencepiece": "tokenizer.model", "tekken": "tekken.json"}
    for i, file in enumerate(tokenizer.files):
        name = usual.get(tokenizer.kind, file.name) if i == 0 else file.name
        shutil.copyfile(file, folder / name)
    if tokenizer.kind == "hf" and not (folder / "tokenizer_config.json").is_file():
        control = {
            "eos_token": tokenizer.special.eos,
            "bos_token": tokenizer.special.bos,
            "pad_token": tokenizer.special.pad,
        }
        named = {key: tokenizer.decode([value]) for key, value in control.items() if value is not None}
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": context, **named}
        write_atomically(folder / "tokenizer_config.json", _json(settings))


def _save(weights: dict[str, Tensor], folder: Path, stem: str, shard_bytes: int) -> None:
    """The hub's own writer: it splits, writes the index, and removes the shards of an earlier export."""
    _require_safetensors()
    from huggingface_hub import save_torch_state_dict

    with disk_full_named(folder):
        folder.mkdir(parents=True, exist_ok=True)
        save_torch_state_dict(
            weights, folder, filename_pattern=f"{stem}{{suffix}}.safetensors", max_shard_size=shard_bytes
        )


def _load(folder: Path, device: str | torch.device | None) -> dict[str, Tensor]:
    _require_safetensors()
    from safetensors.torch import load_file

    index = folder / "model.safetensors.index.json"
    files = ["model.safetensors"]
    if index.is_file():
        files = sorted(set(msgspec.json.decode(index.read_bytes())["weight_map"].values()))
    weights: dict[str, Tensor] = {}
    for file in files:
        if not (folder / file).is_file():
            raise UsageError(f"{folder / file} is missing: the folder is not whole. Copy or export it again.")
        weights.update(load_file(folder / file, device=str(device or "cpu")))
    return weights


def _require_safetensors() -> None:
    try:
        import safetensors.torch  # noqa: F401
    except ImportError as error:
        raise MissingDependency("safetensors", "train", "Reading or writing model weights") from error


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
