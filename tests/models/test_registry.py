"""build_model: by name and size, by a user's function, and what it says when neither is right."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from headrace.errors import UsageError
from headrace.models import MODELS, LanguageModel, build_model, forward_options

TINY = {"width": 16, "heads": 2, "layers": 1, "ffn": 32, "context": 16}

USER = """
from dataclasses import dataclass
import torch
from torch import nn

@dataclass
class Shape:
    size: str
    width: int = 8

class Bigram(nn.Module):
    def __init__(self, vocab_size, shape):
        super().__init__()
        self.shape = shape
        self.table = nn.Embedding(vocab_size, vocab_size)
    def forward(self, tokens, targets):
        return nn.functional.cross_entropy(self.table(tokens).flatten(0, 1), targets.flatten())

def build(vocab_size, size, **options):
    return Bigram(vocab_size, Shape(size, **options))

class Frozen(Bigram):
    def __init__(self, vocab_size, shape):
        super().__init__(vocab_size, shape)
        self.norm = nn.BatchNorm1d(vocab_size)
        self.table.eval()
    def forward(self, tokens, targets):
        return self.norm(self.table(tokens)[:, 0]).sum() * 0 + super().forward(tokens, targets)

def frozen(vocab_size, size):
    return Frozen(vocab_size, size)

class Options(Bigram):
    def forward(self, tokens, targets, *, loss_mask=None):
        return super().forward(tokens, targets)

def masked(vocab_size, size):
    return Options(vocab_size, size)

def number(vocab_size, size):
    return 3

class Scores(Bigram):
    def forward(self, tokens, targets):
        return self.table(tokens)

def scores(vocab_size, size):
    return Scores(vocab_size, size)

class OneArgument(Bigram):
    def forward(self, tokens):
        return self.table(tokens).sum()

def one_argument(vocab_size, size):
    return OneArgument(vocab_size, size)

class Detached(Bigram):
    def forward(self, tokens, targets):
        return super().forward(tokens, targets).detach()

def detached(vocab_size, size):
    return Detached(vocab_size, size)
"""


@pytest.fixture
def user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "my_own_model.py"
    path.write_text(USER, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_own_model", raising=False)
    return path


def weights(model: nn.Module) -> list[torch.Tensor]:
    return list(model.state_dict().values())


def test_same_seed_same_model() -> None:
    first, again, other = (build_model("transformer", vocab_size=20, seed=seed, **TINY) for seed in (1, 1, 2))
    assert isinstance(first, LanguageModel)
    torch.testing.assert_close(weights(first), weights(again), rtol=0, atol=0)
    assert not torch.equal(first.embedding.weight, other.embedding.weight)


def test_random_numbers_of_the_caller_are_left_alone() -> None:
    torch.manual_seed(0)
    wanted = torch.rand(1)
    torch.manual_seed(0)
    build_model("transformer", vocab_size=20, **TINY)
    assert torch.equal(torch.rand(1), wanted)


def test_device_type_and_options() -> None:
    model = build_model("transformer", "nano", vocab_size=20, context=99, dtype=torch.bfloat16, tied=False)
    assert (model.context, model.config.width, model.head.weight.dtype) == (99, 128, torch.bfloat16)
    assert all(tensor.isfinite().all() for tensor in weights(model))
    meta = build_model("transformer", "large", vocab_size=20, device="meta")
    assert {tensor.device.type for tensor in weights(meta)} == {"meta"}
    with torch.device("meta"):
        assert build_model("transformer", "nano", vocab_size=20).embedding.weight.is_meta


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("resnet", {}, "model 'resnet': there is transformer"),
        ("transformer", {"size": "huge"}, "size 'huge': transformer comes in nano, micro, tiny"),
        ("transformer", {"dropout": 0.1}, "option 'dropout': transformer has vocab_size, context, width"),
        ("transformer", {"vocab_size": 0}, "vocab_size 0"),
        ("transformer", {"layers": "two"}, "option layers 'two': transformer takes int there"),
        ("transformer", {"kv_heads": 2.0}, "option kv_heads 2.0: transformer takes int or None there"),
        ("nowhere.py:build", {}, "nowhere.py: there is no such file"),
        ("no_such_module:build", {}, "module 'no_such_module' cannot be imported"),
        ("torch.no_such_module:build", {}, "module 'torch.no_such_module' cannot be imported"),
        ("math:build", {}, "math has no function 'build'. It has: .*sqrt"),
    ],
)
def test_unknown(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        build_model(name, **{"vocab_size": 20, **options})


def test_every_model_has_the_same_sizes() -> None:
    for model in MODELS.values():
        assert list(model.sizes) == ["nano", "micro", "tiny", "small", "medium", "large", "xlarge"]


@pytest.mark.parametrize("name", ["my_own_model:build", "my_own_model.py:build", "{path}:build"])
def test_model_of_a_user(user_file: Path, name: str) -> None:
    torch.manual_seed(0)
    wanted = torch.rand(1)
    torch.manual_seed(0)
    name = name.format(path=user_file)
    path = list(sys.path)
    models = [build_model(name, "small", vocab_size=20, width=3, seed=seed) for seed in (1, 1, 2)]
    assert sys.path == path
    assert torch.equal(torch.rand(1), wanted)
    assert (models[0].shape.size, models[0].shape.width) == ("small", 3)
    assert models[0].training
    assert torch.equal(models[0].table.weight, models[1].table.weight)
    assert not torch.equal(models[0].table.weight, models[2].table.weight)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("number", "returned int: it must return a torch.nn.Module"),
        ("scores", r"returned shape \[1, 2, 20\] for the loss"),
        ("one_argument", "cannot be called with tokens and targets"),
        ("detached", "a scalar with a gradient"),
        ("absent", "has no function 'absent'. It has: .*build"),
    ],
)
def test_wrong_model_of_a_user(user_file: Path, function: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        build_model(f"{user_file}:{function}", vocab_size=20)


def test_a_users_own_missing_import_is_his(user_file: Path) -> None:
    user_file.write_text("import no_such_dependency", encoding="utf-8")
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        build_model("my_own_model:build", vocab_size=20)


def test_asking_a_users_model_leaves_it_as_it_was(user_file: Path) -> None:
    model = build_model(f"{user_file}:frozen", vocab_size=20)
    assert [part.training for part in (model, model.table, model.norm)] == [True, False, True]
    assert model.norm.num_batches_tracked == 0


def test_what_forward_takes(user_file: Path) -> None:
    assert forward_options(build_model("transformer", vocab_size=20, **TINY)) == {"doc_ids", "loss_mask"}
    assert forward_options(build_model(f"{user_file}:build", vocab_size=20)) == set()
    assert forward_options(build_model(f"{user_file}:masked", vocab_size=20)) == {"loss_mask"}
