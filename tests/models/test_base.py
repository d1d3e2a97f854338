"""The interface carries a model that is no transformer: a recurrence, whose cache is its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headrace.errors import UsageError
from headrace.models import MODELS, LanguageModel, build_model


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    vocab_size: int
    context: int
    width: int
    tied: bool = True


class Recurrent(LanguageModel):
    config_type = RecurrentConfig
    sizes = {"nano": {"width": 24, "context": 32}}  # noqa: RUF012

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.body = nn.GRU(config.width, config.width, batch_first=True)
        self.last_norm: Tensor | None = None

    def hidden(self, tokens: Tensor, *, doc_ids: Tensor | None = None, cache: Any = None) -> Tensor:
        if doc_ids is not None:
            raise UsageError("a GRU cannot keep documents apart")
        states, last = self.body(self.embedding(tokens), None if cache is None else cache.get("state"))
        if cache is not None:
            cache["state"] = last
        self.last_norm = states.detach().norm()
        return states

    def new_cache(self, batch: int, length: int) -> dict[str, Tensor]:
        return {}

    def initialise(self, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.3, generator=generator)

    def metrics(self) -> dict[str, Tensor]:
        return {} if self.last_norm is None else {"state_norm": self.last_norm}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Recurrent:
    monkeypatch.setitem(MODELS, "recurrent", Recurrent)
    return build_model("recurrent", "nano", vocab_size=30)


def tokens(rows: int, length: int) -> Tensor:
    return torch.randint(30, (rows, length), generator=torch.Generator().manual_seed(0))


def test_loss_logits_and_evaluation_agree(model: Recurrent) -> None:
    ids = tokens(3, 9)
    logits = model(ids[:, :-1])
    assert torch.equal(logits, model.logits(ids[:, :-1]))
    wanted = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    torch.testing.assert_close(model(ids[:, :-1], ids[:, 1:]), wanted)
    found = model.evaluate(ids[:, :-1], ids[:, 1:])
    torch.testing.assert_close(found.loss_sum / found.count, wanted.detach())
    assert found.correct == (logits.argmax(-1) == ids[:, 1:]).sum()


def test_generates_from_its_state(model: Recurrent) -> None:
    ids = tokens(2, 4)
    for _ in range(40):  # more than its context: a recurrence has no last position
        ids = torch.cat([ids, model.logits(ids)[:, -1:].argmax(-1)], 1)
    assert torch.equal(model.generate(tokens(2, 4), 40, temperature=0), ids)


def test_counts(model: Recurrent) -> None:
    body = 2 * 3 * 24 * 24 + 2 * 3 * 24
    assert model.parameter_count() == body + 30 * 24
    assert model.parameter_count(embeddings=False) == body
    assert model.flops_per_token(1) == model.flops_per_token(1000) == 6 * (body + 30 * 24)


def test_metrics(model: Recurrent) -> None:
    assert model.metrics() == {}
    model(tokens(1, 4))
    assert model.metrics()["state_norm"] > 0


def test_unfinished_model_is_refused() -> None:
    class Unfinished(LanguageModel):
        def hidden(self, tokens: Tensor, *, doc_ids: Tensor | None = None, cache: Any = None) -> Tensor:
            return tokens

    with pytest.raises(TypeError, match="abstract"):
        Unfinished(RecurrentConfig(vocab_size=2, context=2, width=2))  # type: ignore[abstract]
