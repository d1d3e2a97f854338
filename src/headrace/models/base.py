"""LanguageModel: what every model of Headrace is, so that training, sampling and measuring know only this."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from headrace.models.generation import generate
from headrace.models.loss import Evaluation, chunked_cross_entropy, evaluate_cross_entropy


class ModelConfig(Protocol):
    """What the config of every model has; the rest is the model's own."""

    @property
    def vocab_size(self) -> int: ...
    @property
    def context(self) -> int: ...  # the longest sequence
    @property
    def width(self) -> int: ...
    @property
    def tied(self) -> bool: ...  # one table for tokens and output


class LanguageModel(nn.Module, ABC):
    """A token table, a body that a subclass writes, and an output table which may be the token table again.

    A subclass gives `config_type`, `sizes`, `hidden`, `new_cache`, `initialise` and, if it does more than multiply by
    its weights, `flops_per_token`. A cache is whatever the model needs to go on from the tokens it has seen: keys and
    values, or the state of a recurrence. Only the model looks into it.
    """

    config_type: ClassVar[type[Any]]
    sizes: ClassVar[Mapping[str, Mapping[str, Any]]]  # fields of the config, vocab_size apart

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.vocab_size = config.vocab_size
        self.context = config.context
        self.embedding = nn.Embedding(config.vocab_size, config.width)
        # A tied model has no second name for its table: what is saved, sharded or moved has every tensor once.
        self.head = None if config.tied else nn.Linear(config.width, config.vocab_size, bias=False)

    @abstractmethod
    def hidden(self, tokens: Tensor, *, doc_ids: Tensor | None = None, cache: Any = None) -> Tensor:
        """[B, L] tokens to [B, L, width] states, ready for the output table; a cache is read and then extended."""

    @abstractmethod
    def new_cache(self, batch: int, length: int) -> Any:
        """An empty cache for this many rows of at most this many tokens."""

    @abstractmethod
    def initialise(self, seed: int = 0) -> None:
        """Fill all parameters anew; the same seed on the same kind of device gives the same values."""

    @property
    def output_weight(self) -> Tensor:
        return self.embedding.weight if self.head is None else self.head.weight

    def forward(
        self,
        tokens: Tensor,
        targets: Tensor | None = None,
        *,
        doc_ids: Tensor | None = None,
        loss_mask: Tensor | None = None,
    ) -> Tensor:
        """Mean loss of the next tokens, a float32 scalar on the device; without targets the logits.

        Targets are the tokens one place on, as a batch of the Loader has them. Those where `loss_mask` is False, or
        that are negative, do not count. `doc_ids` keeps the documents of a packed row apart.
        """
        states = self.hidden(tokens, doc_ids=doc_ids)
        if targets is None:
            return nn.functional.linear(states, self.output_weight)
        return chunked_cross_entropy(states, self.output_weight, targets, loss_mask)

    @torch.no_grad()
    def evaluate(
        self, tokens: Tensor, targets: Tensor, *, doc_ids: Tensor | None = None, loss_mask: Tensor | None = None
    ) -> Evaluation:
        """Summed loss, right next tokens and how many were asked for: tensors on the device, to be added up there."""
        states = self.hidden(tokens, doc_ids=doc_ids)
        return evaluate_cross_entropy(states, self.output_weight, targets, loss_mask)

    def logits(self, tokens: Tensor, *, doc_ids: Tensor | None = None, cache: Any = None) -> Tensor:
        states = self.hidden(tokens, doc_ids=doc_ids, cache=cache)
        return nn.functional.linear(states, self.output_weight)

    def generate(
        self,
        prompt_ids: Tensor | Sequence[int] | Sequence[Sequence[int]],
        max_new_tokens: int,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        stop_ids: Sequence[int] = (),
    ) -> Tensor:
        """[B, prompt + new] tokens. Temperature 0 takes the likeliest; a stopped row repeats its stop id to the end."""
        return generate(
            self,
            prompt_ids,
            max_new_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            stop_ids=stop_ids,
        )

    def parameter_count(self, *, embeddings: bool = True) -> int:
        """All parameters, a tied table once; without embeddings, neither the token table nor the output table."""
        tables = self.embedding.weight.numel() + (0 if self.head is None else self.head.weight.numel())
        return sum(parameter.numel() for parameter in self.parameters()) - (0 if embeddings else tables)

    def flops_per_token(self, seq_len: int) -> float:
        """Floating-point operations of training on one token: 6 for each weight that it is multiplied by.

        2 forward and 4 backward, for the body and the output table; reading the token table costs none.
        """
        return 6.0 * (self.parameter_count(embeddings=False) + self.output_weight.numel())

    def metrics(self) -> dict[str, Tensor]:
        """What else the last forward pass has to tell, as scalars on the device; firing rates, for example."""
        return {}
