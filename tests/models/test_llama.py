"""What is exported is what transformers loads: the same logits, tokens and texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from headrace.errors import UsageError
from headrace.models import build_model, export_llama, export_safetensors, import_llama
from headrace.models.transformer import Transformer
from headrace.tokenizers import load_tokenizer

VOCAB = 101


def model(**options: Any) -> Transformer:
    given = {"width": 64, "heads": 4, "layers": 2, "ffn": 96, "context": 64, "vocab_size": VOCAB, **options}
    built: Transformer = build_model("transformer", "nano", **given)
    with torch.no_grad():
        for name, parameter in built.named_parameters():
            if "norm" in name:  # or a mixed-up pair of norms would not show
                parameter.normal_(1.0, 0.2, generator=torch.Generator().manual_seed(len(name)))
    return built


def tokens(length: int = 40) -> torch.Tensor:
    return torch.randint(VOCAB, (2, length), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "options", [{}, {"kv_heads": 2, "rope_base": 500_000.0}, {"kv_heads": 1, "tied": False, "norm_eps": 1e-6}]
)
def test_transformers_computes_the_same(tmp_path: Path, options: dict[str, Any]) -> None:
    from transformers import AutoModelForCausalLM

    ours = model(**options)
    export_llama(ours, tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    assert type(theirs).__name__ == "LlamaForCausalLM"
    assert theirs.num_parameters() == ours.parameter_count()
    with torch.no_grad():
        torch.testing.assert_close(ours.logits(tokens()), theirs(tokens()).logits, rtol=0, atol=1e-4)
    greedy = theirs.generate(tokens(5), max_new_tokens=8, do_sample=False, pad_token_id=0)
    assert torch.equal(greedy, ours.generate(tokens(5), 8, temperature=0))


@pytest.mark.parametrize("options", [{}, {"kv_heads": 2, "tied": False, "rope_base": 500_000.0}])
@pytest.mark.parametrize("shard_bytes", [40_000, 5_000_000_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_there_and_back(tmp_path: Path, options: dict[str, Any], shard_bytes: int, dtype: torch.dtype) -> None:
    ours = model(**options).to(dtype)
    export_llama(ours, tmp_path, shard_bytes=shard_bytes)
    again = import_llama(tmp_path)
    assert again.config.groups == ours.config.groups
    assert again.embedding.weight.dtype == dtype
    assert torch.equal(again.logits(tokens()), ours.logits(tokens()))
    again(tokens(), tokens()).backward()
    assert all(parameter.grad is not None for parameter in again.parameters())


def test_shards(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    ours = model()
    export_llama(ours, tmp_path, shard_bytes=60_000)
    shards = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert len(shards) > 2
    assert shards[0] == f"model-00001-of-{len(shards):05}.safetensors"
    assert all((tmp_path / shard).stat().st_size < 62_000 for shard in shards)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"].values()) == set(shards)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        torch.testing.assert_close(ours.logits(tokens()), theirs(tokens()).logits, rtol=0, atol=1e-4)
    export_llama(ours, tmp_path)
    assert [path.name for path in tmp_path.glob("model*")] == ["model.safetensors"]
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(UsageError, match=r"model.safetensors is missing"):
        import_llama(tmp_path)


def test_what_transformers_saved_is_imported(tmp_path: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        rope_parameters={"rope_type": "default", "rope_theta": 123_456.0},
    )
    torch.manual_seed(0)
    theirs = LlamaForCausalLM(config).eval()
    theirs.save_pretrained(tmp_path)
    ours = import_llama(tmp_path)
    assert ours.config.rope_base == 123_456.0
    with torch.no_grad():
        torch.testing.assert_close(ours.logits(tokens()), theirs(tokens()).logits, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model_type": "gpt2"}, "model_type 'gpt2'"),
        ({"attention_bias": True}, "attention_bias True"),
        ({"head_dim": 32}, "head_dim 32"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}}, "rope_type 'llama3'"),
        ({"num_hidden_layers": 3}, r"lacks model\.layers\.2\."),
    ],
)
def test_what_cannot_be_imported(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    export_llama(model(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(UsageError, match=words):
        import_llama(tmp_path)


def test_not_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a Llama folder"):
        import_llama(tmp_path)


def test_tokenizer_of_a_dataset(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    ours = load_tokenizer("headrace-32k")
    ours.save(tmp_path / "data" / "tokenizer")
    small = model(vocab_size=ours.vocab_size)
    export_llama(small, tmp_path / "llama", tokenizer=tmp_path / "data" / "tokenizer")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "llama")
    text = "def f(x):\n    return x ** 2  # ééé 日本\n"
    assert theirs.encode(text) == ours.reference().encode([text.encode()])[0].tolist()
    config = json.loads((tmp_path / "llama" / "config.json").read_text())
    assert theirs.eos_token_id == config["eos_token_id"] == ours.special.eos
    assert theirs.model_max_length == 64


@pytest.mark.parametrize(("name", "file"), [("mistral", "tokenizer.model"), ("tekken", "tekken.json")])
def test_other_kinds_of_tokenizer(tmp_path: Path, real_tokenizers: dict[str, Path], name: str, file: str) -> None:
    export_llama(model(), tmp_path, tokenizer=real_tokenizers[name])
    assert (tmp_path / file).read_bytes() == real_tokenizers[name].read_bytes()


def test_plain_weights(tmp_path: Path) -> None:
    ours = model()
    export_safetensors(ours, tmp_path / "weights" / "mine.safetensors")
    found = load_file(tmp_path / "weights" / "mine.safetensors")
    assert found.keys() == ours.state_dict().keys()
    torch.testing.assert_close(found, dict(ours.state_dict()), rtol=0, atol=0)
    export_safetensors(ours, tmp_path / "folder")
    assert (tmp_path / "folder" / "model.safetensors").is_file()


def test_plain_weights_of_any_module(tmp_path: Path) -> None:
    tied = nn.Sequential(nn.Embedding(7, 3), nn.Linear(3, 7, bias=False))
    tied[1].weight = tied[0].weight
    export_safetensors(tied, tmp_path)
    assert len(load_file(tmp_path / "model.safetensors")) == 1
    with pytest.raises(UsageError, match="Sequential cannot be a Llama"):
        export_llama(tied, tmp_path)  # type: ignore[arg-type]
