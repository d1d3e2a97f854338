"""NeuroGen: what its neurons compute, that blocks and single tokens agree, and that it learns through its spikes."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from headrace.errors import UsageError
from headrace.models import build_model
from headrace.models import neurogen as source
from headrace.models.neurogen import SIZES, CorticalModule, NeuroGen, NeuroGenConfig, State
from headrace.models.spikes import Fired
from headrace.training.optimizer import sort_parameters

VOCAB = 61


def small(*, dtype: torch.dtype = torch.float32, device: str = "cpu", seed: int = 0, **options: Any) -> NeuroGen:
    shape = {"width": 24, "modules": 3, "columns": 3, "column_size": 16, "winners": 3, "context": 64, "delay": 5}
    with torch.device(device):
        model = NeuroGen(NeuroGenConfig(**{"vocab_size": VOCAB, **shape, **options})).to(dtype)
    model.initialise(seed)
    return model


def stirred(model: NeuroGen) -> NeuroGen:
    """Every parameter away from its first value, so that none is equal to another or without effect."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += (
                0.3
                * parameter.std().nan_to_num(1.0).clamp(min=0.5)
                * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            )
    return model


def tokens(rows: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(VOCAB, (rows, length), generator=torch.Generator().manual_seed(seed))


def documents(length: int) -> Tensor:
    """Three of them; the second is shorter than any delay line, and the third has the number of the first."""
    return torch.tensor([0] * (length // 2) + [4] * 3 + [0] * (length - length // 2 - 3)).expand(2, length)


def gradients(model: NeuroGen) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def loss_and_gradients(model: NeuroGen, ids: Tensor, **options: Any) -> tuple[Tensor, dict[str, Tensor]]:
    model.zero_grad()
    loss = model(ids[:, :-1], ids[:, 1:], **options)
    loss.backward()
    return loss.detach(), gradients(model)


@pytest.mark.parametrize("size", list(SIZES))
def test_sizes_are_those_of_the_transformer(size: str) -> None:
    with torch.device("meta"):
        model = NeuroGen(NeuroGenConfig(vocab_size=32_768, **SIZES[size]))
    other = build_model("transformer", size, vocab_size=32_768, device="meta")
    assert model.parameter_count() == pytest.approx(other.parameter_count(), rel=0.01)
    for name in ("width", "context", "tied"):
        assert getattr(model.config, name) == getattr(other.config, name)


def by_hand(model: NeuroGen, ids: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The equations of the file's first lines, for one row, token by token, and the spikes of each module."""
    c = model.config
    outputs, rest = [model.embedding.weight[ids]], list(model.connections)
    x, rasters = outputs[0], []
    for module in model.brain:
        assert isinstance(module, CorticalModule)
        leak, fade = torch.sigmoid(module.leak), torch.sigmoid(module.fade)
        heard = module.norm(x)
        membrane, trace, spikes = torch.zeros_like(leak), torch.zeros_like(leak), []
        for t in range(len(ids)):
            near = [module.dendrites.view(c.taps, -1)[j] * heard[t - j] for j in range(c.taps) if t >= j]
            current = module.inward.weight @ torch.stack(near).sum(0)
            membrane = leak * membrane + (1 - leak**2).sqrt() * current
            if t >= c.delay:
                trace = fade * trace + (1 - fade) * spikes[t - c.delay]
            above = membrane - module.base - module.strength * trace
            spike = torch.zeros_like(above)
            for column in range(c.columns):
                first = column * c.column_size
                order = above[first : first + c.column_size].argsort(descending=True)[: c.winners] + first
                spike[order[above[order] > 0]] = 1.0
            spikes.append(spike)
        rasters.append(torch.stack(spikes))
        outputs.append(rasters[-1] @ module.outward.weight.T)
        x = torch.stack([rest.pop(0) * output for output in outputs]).sum(0)
    assert not rest
    return model.norm(x), rasters


@torch.no_grad()
@pytest.mark.parametrize("delay", [1, 5])
@pytest.mark.parametrize("method", ["blocks", "sequential"])
def test_is_what_its_equations_say(method: str, delay: int) -> None:
    model = stirred(small(method=method, delay=delay, dtype=torch.float64))
    ids = tokens(1, 23)
    wanted, rasters = by_hand(model, ids[0])
    torch.testing.assert_close(model.hidden(ids)[0], wanted, rtol=0, atol=1e-11)
    assert model.fired is not None
    torch.testing.assert_close(model.fired, torch.stack([raster.mean(0) for raster in rasters]))
    assert 0.02 < model.fired.mean() <= 3 / 16


@pytest.mark.parametrize("delay", [1, 5, 32])
@pytest.mark.parametrize("length", [1, 4, 71])
def test_blocks_are_the_sequential_reference(length: int, delay: int) -> None:
    fast, slow = (stirred(small(method=m, delay=delay, dtype=torch.float64)) for m in ("blocks", "sequential"))
    ids = tokens(2, length + 1)
    for options in [{}] if length < 10 else [{}, {"doc_ids": documents(length)}]:
        loss, found = loss_and_gradients(fast, ids, **options)
        wanted, by_token = loss_and_gradients(slow, ids, **options)
        torch.testing.assert_close(fast.hidden(ids), slow.hidden(ids), rtol=0, atol=1e-10)
        torch.testing.assert_close(loss, wanted, rtol=0, atol=1e-10)
        torch.testing.assert_close(found, by_token, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("fault", [False, True])
def test_gradients_reach_every_parameter(fault: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With spikes cut out of the graph, as a step without a surrogate would cut them, nothing before them learns."""
    if fault:
        fire = source.fire_in_blocks
        monkeypatch.setattr(source, "fire_in_blocks", lambda *given: Fired(*(x.detach() for x in fire(*given))))
    model = small(tied=False)
    _, found = loss_and_gradients(model, tokens(4, 65))
    reached = {name for name, grad in found.items() if grad.abs().max() > 0}
    missing = {name for name, _ in model.named_parameters()} - reached
    before = ("dendrites", "leak", "base", "strength", "fade", "inward.weight")
    expected = {f"brain.{i}.{name}" for i in range(3) for name in (*before, "norm.weight")} | {"embedding.weight"}
    assert missing == (expected if fault else set())


def test_a_neuron_that_fires_gets_tired() -> None:
    """One neuron, no competitor: with a constant current it fires until its own spikes arrive, then less and less."""
    model = small(modules=1, delay=7, dtype=torch.float64)
    module = model.brain[0]
    assert isinstance(module, CorticalModule)
    with torch.no_grad():
        for parameter, value in ((module.base, 0.0), (module.strength, 4.0), (module.fade, 3.0)):
            parameter.fill_(value)
        spikes = module._fired(
            torch.full((1, 70, 48), -1.0).double().index_fill(2, torch.tensor([0]), 0.5), None, State()
        )
    assert spikes[0, :, 1:].sum() == 0
    train = spikes[0, :, 0].bool().tolist()
    assert train[:7] == [True] * 7
    assert 0.05 < sum(train[20:]) / 50 < 0.5  # 0.5 / 4 is where the threshold and the current are even


def test_no_token_sees_a_later_one() -> None:
    model = small(dtype=torch.float64)
    ids = tokens(1, 40)
    changed = ids.clone()
    changed[0, 12] = (changed[0, 12] + 1) % VOCAB
    before, after = model.logits(ids), model.logits(changed)
    torch.testing.assert_close(before[:, :12], after[:, :12], rtol=0, atol=1e-12)
    assert ((before - after).abs().amax(-1)[0, 12:] > 1e-4).float().mean() > 0.5  # memory: long after its taps


@pytest.mark.parametrize("delay", [1, 5])
def test_documents_of_a_packed_row_are_as_if_alone(delay: int) -> None:
    model = stirred(small(dtype=torch.float64, delay=delay))
    parts = [tokens(2, length, seed=length) for length in (30, 3, 28)]
    row, doc_ids = torch.cat(parts, 1), torch.tensor([0] * 30 + [4] * 3 + [0] * 28).expand(2, 61)
    packed = model.logits(row, doc_ids=doc_ids)
    alone = torch.cat([model.logits(part) for part in parts], 1)
    torch.testing.assert_close(packed, alone, rtol=0, atol=1e-10)
    assert (model.logits(row) - alone).abs().max() > 0.01


@torch.no_grad()
@pytest.mark.parametrize("pieces", [[10, 1, 1, 1, 7, 4], [1] * 24, [24], [3, 21]])
@pytest.mark.parametrize("options", [{"taps": 1, "delay": 1}, {"delay": 5}, {"delay": 32, "tied": False}])
def test_cache_changes_nothing(options: dict[str, Any], pieces: list[int]) -> None:
    model = stirred(small(dtype=torch.float64, **options))
    ids = tokens(2, 24)
    cache = model.new_cache(2, 24)
    found = torch.cat([model.logits(part, cache=cache) for part in ids.split(pieces, 1)], 1)
    torch.testing.assert_close(found, model.logits(ids), rtol=0, atol=1e-10)
    assert cache[0].late is not None
    assert cache[0].late.shape == (2, model.config.delay, 48)
    kept = [value.untyped_storage().nbytes() / 8 / 2 for value in vars(cache[0]).values()]
    assert kept == [(model.config.taps - 1) * 24, 48, 48, model.config.delay * 48]  # and nothing of the row


def test_generates_beyond_its_context_from_a_state_of_constant_size() -> None:
    model = small(dtype=torch.float64, context=8)
    ids = tokens(2, 4)
    found = model.generate(ids, 30, temperature=0)
    for _ in range(30):
        ids = torch.cat([ids, model.logits(ids)[:, -1:].argmax(-1)], 1)
    assert torch.equal(found, ids)
    cache = model.new_cache(2, 4)
    model.logits(ids[:, :4], cache=cache)
    with pytest.raises(UsageError, match="doc_ids with a cache"):
        model.logits(ids[:, :4], cache=cache, doc_ids=ids[:, :4])


@pytest.mark.parametrize("size", ["nano", "micro"])
def test_starts_alive_and_with_the_loss_of_guessing(size: str) -> None:
    model = NeuroGen(NeuroGenConfig(vocab_size=32_768, **SIZES[size]))
    model.initialise(0)
    ids = torch.randint(32_768, (2, 129), generator=torch.Generator().manual_seed(0))
    assert model.metrics() == {}
    assert model(ids[:, :-1], ids[:, 1:]).item() == pytest.approx(math.log(32_768) + 0.2, abs=0.1)
    found = model.metrics()
    assert {value.shape for value in found.values()} == {()}
    assert 0.02 < found["firing_rate"] <= model.config.winners / model.config.column_size
    torch.testing.assert_close(found["firing_rate"] + found["sparsity"], torch.tensor(1.0))
    assert found["silent_neurons"] < 0.1
    assert model.fired is not None
    assert (model.fired.mean(1) > 0.02).all()


def test_metrics_are_of_training_only() -> None:
    model = small().eval()
    model(tokens(2, 9))
    assert model.metrics() == {}
    model.train()
    model(tokens(2, 9))
    first = model.metrics()
    assert not any(value.requires_grad for value in first.values())
    model.generate(tokens(1, 3), 5)
    assert model.metrics() == first


def test_what_each_neuron_learns_does_not_decay() -> None:
    model = small()
    matrices = {id(p) for module in model.brain for p in (module.inward.weight, module.outward.weight)}  # type: ignore[union-attr]
    kinds = sort_parameters(model)
    assert {id(p) for p in kinds.hidden} == matrices
    assert not kinds.other


def test_flops_are_what_the_counter_of_torch_counts() -> None:
    model = small(width=64, columns=8)
    ids = tokens(2, 49)
    with FlopCounterMode(display=False) as counter:
        model(ids[:, :-1], ids[:, 1:]).backward()
    assert model.flops_per_token(48) == pytest.approx(counter.get_total_flops() / (2 * 48), rel=0.05)


def test_recomputed_activations_give_the_same_gradients() -> None:
    ids = tokens(2, 33)
    plain, recomputing = small(), small(recompute=True)
    recomputing.brain[1].recompute = False
    (loss, wanted), (again, found) = (loss_and_gradients(model, ids) for model in (plain, recomputing))
    torch.testing.assert_close(again, loss, rtol=0, atol=0)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-7)
    assert torch.equal(plain.metrics()["firing_rate"], recomputing.metrics()["firing_rate"])


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's own, while it traces
@pytest.mark.parametrize("recompute", [False, True])
def test_compiles_as_one_graph(recompute: bool) -> None:
    model = small(recompute=recompute, modules=2)
    ids = tokens(2, 24)
    options = {"doc_ids": documents(23), "loss_mask": documents(23) == 0}
    eager, wanted = loss_and_gradients(model, ids, **options)
    rate = model.metrics()["firing_rate"]
    model.zero_grad()
    model.fired = None
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")(ids[:, :-1], ids[:, 1:], **options)
    compiled.backward()
    torch.testing.assert_close(compiled.detach(), eager)
    torch.testing.assert_close(gradients(model), wanted)
    torch.testing.assert_close(model.metrics()["firing_rate"], rate)


def test_the_host_never_waits() -> None:
    """Tensors without values: whatever asks for one, .item() or a shape that depends on data, raises."""
    model = small(device="meta", recompute=True)
    ids = torch.zeros(2, 32, dtype=torch.int64, device="meta")
    loss = model(ids, ids, doc_ids=ids, loss_mask=ids.bool())
    loss.backward()
    assert (loss.shape, loss.dtype) == ((), torch.float32)
    assert len(gradients(model)) == len(list(model.parameters()))
    assert model.metrics()["firing_rate"].device.type == "meta"
    assert model.generate(ids[:, :4], 5, seed=0).shape == (2, 9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_in_half_precision(dtype: torch.dtype) -> None:
    """Under autocast, and with parameters of half precision: potentials, traces and spikes stay float32."""
    model = small(dtype=dtype)
    ids = tokens(2, 33)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype is torch.float32):
        loss = model(ids[:, :-1], ids[:, 1:])
        cache = model.new_cache(2, 4)
        with torch.no_grad():
            model.logits(ids[:, :4], cache=cache)
        assert model.generate(ids[:, :4], 4, temperature=0).shape == (2, 8)
    loss.backward()
    assert {grad.dtype for grad in gradients(model).values()} == {dtype}
    assert {cache[0].membrane.dtype, cache[0].trace.dtype} == {torch.float32}  # type: ignore[union-attr]
    whole = copy.deepcopy(model).float()
    torch.testing.assert_close(loss.detach(), whole(ids[:, :-1], ids[:, 1:]).detach(), rtol=0, atol=0.1)


def language(rows: int, length: int, seed: int) -> Tensor:
    """Each token follows from the two before it, nine times in ten; from the one before it nothing follows."""
    table = torch.randint(12, (12, 12), generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(12, (rows, length), generator=generator)
    surprise = torch.rand(rows, length, generator=generator) < 0.1
    for t in range(2, length):
        drawn[:, t] = torch.where(surprise[:, t], drawn[:, t], table[drawn[:, t - 2], drawn[:, t - 1]])
    return drawn


def bigram_loss(ids: Tensor) -> float:
    """Of the best guess from one token back, which knows the pairs of the very text it is asked about."""
    pairs = F.one_hot(ids[:, :-1] * 12 + ids[:, 1:], 144).sum((0, 1)).view(12, 12).double()
    share = pairs / pairs.sum(1, keepdim=True)
    return float(-(pairs * share.clamp(min=1e-9).log()).sum() / pairs.sum())


def test_learns_what_pairs_of_tokens_do_not_tell() -> None:
    model = small(vocab_size=12, width=32, columns=4, modules=2, delay=16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    for step in range(150):
        ids = language(8, 65, seed=step)
        optimizer.zero_grad()
        model(ids[:, :-1], ids[:, 1:]).backward()
        optimizer.step()
    ids = language(16, 129, seed=10_000)
    found = model.evaluate(ids[:, :-1], ids[:, 1:])
    assert float(found.loss_sum / found.count) < 0.6 * bigram_loss(ids)
    assert 0.02 < model.metrics()["firing_rate"] <= 3 / 16


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"modules": 0}, "modules 0: it must be at least 1"),
        ({"delay": 0}, "delay 0: it must be at least 1"),
        ({"winners": 16}, "winners 16 in columns of 16 neurons"),
        ({"surrogate": 0.0}, "surrogate 0.0"),
        ({"method": "fast"}, "method 'fast': it must be one of blocks, sequential"),
    ],
)
def test_bad_config(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        small(**options)


def test_same_seed_same_values() -> None:
    one, again, other = (small(seed=seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not torch.equal(one["brain.0.inward.weight"], other["brain.0.inward.weight"])
    config = dataclasses.asdict(small().config)
    assert NeuroGenConfig(**config) == small().config
