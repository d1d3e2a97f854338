"""Sampling from any model with a cache. Everything stays on the device; the host looks only now and then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from headrace.errors import UsageError

if TYPE_CHECKING:
    from headrace.models.base import LanguageModel

LOOK_EVERY = 32  # tokens between two looks at whether all rows have stopped; each makes the host wait for the device

Prompt = Tensor | Sequence[int] | Sequence[Sequence[int]]


@torch.no_grad()  # not inference_mode: its tensors could never be trained on
def generate(
    model: LanguageModel,
    prompt_ids: Prompt,
    max_new_tokens: int,
    *,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    seed: int | None,
    stop_ids: Sequence[int],
) -> Tensor:
    """See LanguageModel.generate."""
    _check(max_new_tokens, temperature, top_k, top_p)
    device = model.embedding.weight.device
    tokens = _prompt_tensor(prompt_ids, device)
    sampler = _Sampler(temperature, top_k, top_p, seed, device)
    with evaluating(model):
        return _extend(model, tokens, max_new_tokens, sampler, torch.tensor(list(stop_ids), device=device))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """In evaluation mode for a while; then every part in the mode it was in, since some may be frozen in it."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _extend(model: LanguageModel, prompt: Tensor, new: int, sampler: _Sampler, stop_ids: Tensor) -> Tensor:
    batch, length = prompt.shape
    cache = model.new_cache(batch, length + new)
    tokens = torch.cat([prompt, prompt.new_zeros(batch, new)], 1)
    stopped = torch.zeros(batch, dtype=torch.bool, device=prompt.device)
    begin = 0
    for end in range(length, length + new):
        chosen = sampler.choose(_last_logits(model, tokens[:, begin:end], cache))
        tokens[:, end] = torch.where(stopped, tokens[:, end - 1], chosen)  # a stopped row repeats its stop id
        begin = end
        if len(stop_ids):
            stopped |= torch.isin(tokens[:, end], stop_ids)
            if (end - length) % LOOK_EVERY == LOOK_EVERY - 1 and bool(stopped.all()):
                break
    return _trimmed(tokens, length, begin + 1, stop_ids) if len(stop_ids) and new else tokens


def _last_logits(model: LanguageModel, tokens: Tensor, cache: Any) -> Tensor:
    """Of the last position only: a prompt of 32K tokens would have 4 GiB of logits."""
    states = model.hidden(tokens, cache=cache)[:, -1]
    return nn.functional.linear(states, model.output_weight).float()


def _trimmed(tokens: Tensor, prompt: int, end: int, stop_ids: Tensor) -> Tensor:
    """Up to where the last row stops, so that the result does not depend on how often the host looked."""
    running = ~torch.isin(tokens[:, prompt:end], stop_ids)
    longest = int(running.cumprod(1).sum(1).max())
    return tokens[:, : min(end, prompt + longest + 1)]


class _Sampler:
    """Temperature, then the k likeliest, then the likeliest that hold p of the probability."""

    def __init__(
        self, temperature: float, top_k: int | None, top_p: float | None, seed: int | None, device: torch.device
    ) -> None:
        self.temperature, self.top_k, self.top_p = temperature, top_k, top_p
        self.generator = None
        if seed is not None and device.type != "meta":
            self.generator = torch.Generator(device).manual_seed(seed)

    def choose(self, logits: Tensor) -> Tensor:
        if self.temperature == 0:
            return logits.argmax(-1)
        logits = logits / self.temperature
        if self.top_k is not None:
            least = logits.topk(min(self.top_k, logits.shape[-1])).values[:, -1:]
            logits = logits.masked_fill(logits < least, -torch.inf)
        if self.top_p is not None:
            logits = _nucleus(logits, self.top_p)
        # The largest of p / Exp(1) falls on each token with its probability; torch.multinomial would check its input
        # on the host.
        noise = torch.empty_like(logits).exponential_(generator=self.generator)
        return (logits.softmax(-1) / noise).argmax(-1)


def _nucleus(logits: Tensor, top_p: float) -> Tensor:
    ranked, order = logits.sort(-1, descending=True)
    probabilities = ranked.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities  # 0 for the likeliest, which is therefore always kept
    dropped = before >= top_p
    return logits.masked_fill(torch.empty_like(dropped).scatter(-1, order, dropped), -torch.inf)


def _prompt_tensor(prompt_ids: Prompt, device: torch.device) -> Tensor:
    rule = "it must hold at least one token, in one row or in rows of equal length"
    try:
        prompt = torch.as_tensor(prompt_ids, device=device).long()
    except ValueError as error:
        raise UsageError(f"prompt: {error}; {rule}. Generate from prompts of different length one by one.") from error
    prompt = prompt[None] if prompt.dim() == 1 else prompt
    if prompt.dim() != 2 or not prompt.numel():
        raise UsageError(
            f"prompt of shape {list(prompt.shape)}: {rule}. Begin with the end-of-document token where you have none."
        )
    return prompt


def _check(max_new_tokens: int, temperature: float, top_k: int | None, top_p: float | None) -> None:
    if max_new_tokens < 0:
        raise UsageError(f"max_new_tokens {max_new_tokens}: it must be at least 0.")
    if not temperature >= 0:
        raise UsageError(f"temperature {temperature}: it must be at least 0; 0 always takes the likeliest token.")
    if top_k is not None and top_k < 1:
        raise UsageError(f"top_k {top_k}: it must be at least 1; leave it out to sample from all tokens.")
    if top_p is not None and not 0 < top_p <= 1:
        raise UsageError(f"top_p {top_p}: it must be above 0 and at most 1; leave it out to sample from all tokens.")
