"""What every model of MODELS owes: its size, no look ahead, a cache that changes nothing, documents kept apart."""

from __future__ import annotations

import dataclasses
import math
import shutil
from typing import Any

import pytest
import torch
from torch import Tensor

from conftest_training import CountSyncs
from headrace.models import MODELS, LanguageModel, build_model

VOCAB, LENGTH = 97, 200  # longer than the blocks that a scan works in, and no multiple of them
SIZES = {
    "nano": (5.2, 256),
    "micro": (14.1, 1024),
    "tiny": (110, 2048),
    "small": (342, 4096),
    "medium": (854, 16_384),
    "large": (1_780, 32_768),
    "xlarge": (3_220, 32_768),
}  # millions of parameters with 32,768 ids, and context
IN_PIECES = {"neurogen"}  # it keeps its spikes from the compiler; all others are one graph
every_model = pytest.mark.parametrize("name", list(MODELS))


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small(name: str, *, depth: int = 2, **options: Any) -> LanguageModel:
    """So many layers, whatever they are called."""
    called = {"layers", "modules"} & {field.name for field in dataclasses.fields(MODELS[name].config_type)}
    model: LanguageModel = build_model(name, "nano", vocab_size=VOCAB, **dict.fromkeys(called, depth), **options)
    return model


def tokens(rows: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(VOCAB, (rows, length), generator=torch.Generator().manual_seed(seed))


def gradients(model: LanguageModel) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def train_once(model: LanguageModel, ids: Tensor, **options: Any) -> tuple[Tensor, dict[str, Tensor]]:
    model.zero_grad()
    loss = model(ids[:, :-1], ids[:, 1:], **options)
    loss.backward()
    return loss.detach(), gradients(model)


# Size and first values


@every_model
@pytest.mark.parametrize("size", SIZES)
def test_sizes(name: str, size: str) -> None:
    millions, context = SIZES[size]
    model = build_model(name, size, vocab_size=32_768, device="meta")
    assert model.parameter_count() / 1e6 == pytest.approx(millions, rel=0.05)
    assert model.context == context


@every_model
def test_same_seed_same_weights(name: str) -> None:
    first, again, other = (small(name, seed=seed).state_dict() for seed in (1, 1, 2))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert not torch.equal(first["embedding.weight"], other["embedding.weight"])


@every_model
def test_every_parameter_is_filled(name: str) -> None:
    model = small(name)
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(torch.nan)
    model.initialise(0)
    torch.testing.assert_close(dict(model.state_dict()), before, rtol=0, atol=0)


@every_model
@pytest.mark.parametrize("size", ["nano", "micro"])
@pytest.mark.parametrize("tied", [True, False])
def test_first_loss_is_that_of_guessing(name: str, size: str, tied: bool) -> None:
    model = build_model(name, size, vocab_size=VOCAB, tied=tied)
    ids = tokens(4, 65)
    assert model(ids[:, :-1], ids[:, 1:]).item() == pytest.approx(math.log(VOCAB), abs=0.3)


@every_model
def test_overfits_one_batch(name: str) -> None:
    model = small(name)
    ids = tokens(2, 33)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        train_once(model, ids)
        optimizer.step()
    found = model.evaluate(ids[:, :-1], ids[:, 1:])
    assert found.count == 2 * 32
    assert found.loss_sum / found.count < 0.5
    torch.testing.assert_close(found.loss_sum / found.count, model(ids[:, :-1], ids[:, 1:]).detach())


# What a token may see


@every_model
def test_no_token_sees_a_later_one(name: str) -> None:
    model = small(name)
    ids = tokens(1, LENGTH)
    for place in (12, 130):
        changed = ids.clone()
        changed[0, place] = (changed[0, place] + 1) % VOCAB
        with torch.no_grad():
            before, after = model.logits(ids), model.logits(changed)
        # A Fourier transform rounds all places together: 2e-6 where a token that is seen changes logits by 1.
        torch.testing.assert_close(before[:, :place], after[:, :place], rtol=0, atol=1e-5)
        assert ((before - after).abs().amax(-1)[0, place : place + 2] > 1e-2).all()


@every_model
@pytest.mark.parametrize("pieces", [[10, 1, 1, 1, 7, 4], [1] * 24, [24], [37, 1, 100, 1, 1, 60]], ids=str)
def test_cache_changes_nothing(name: str, pieces: list[int]) -> None:
    model = small(name, tied=False).eval()
    ids = tokens(2, sum(pieces))
    cache = model.new_cache(2, sum(pieces))
    with torch.no_grad():
        found = torch.cat([model.logits(part, cache=cache) for part in ids.split(pieces, 1)], 1)
        torch.testing.assert_close(found, model.logits(ids), rtol=0, atol=1e-4)


@every_model
@pytest.mark.parametrize("prompt", [1, 37, 131])
def test_generates_what_the_whole_pass_says(name: str, prompt: int) -> None:
    model = small(name)
    ids = tokens(2, prompt)
    made = model.generate(ids, 6, temperature=0)
    for _ in range(6):
        with torch.no_grad():
            ids = torch.cat([ids, model.logits(ids)[:, -1:].argmax(-1)], 1)
    assert torch.equal(made, ids)


@every_model
def test_documents_of_a_packed_row_are_as_if_alone(name: str) -> None:
    model = small(name)
    rows = [[25, 1, 64, 110], [3, 128, 2, 67]]
    ids = tokens(2, LENGTH)
    doc_ids = torch.stack([torch.repeat_interleave(torch.arange(4), torch.tensor(row)) for row in rows])
    with torch.no_grad():
        packed = model.logits(ids, doc_ids=doc_ids)
        for i, lengths in enumerate(rows):
            alone = torch.cat([model.logits(part[None]) for part in ids[i].split(lengths)], 1)
            torch.testing.assert_close(packed[i : i + 1], alone, rtol=0, atol=1e-4)
        assert (packed - model.logits(ids)).abs()[:, -1].max() > 1e-4  # otherwise nothing was kept apart


@every_model
def test_what_the_mask_leaves_out_does_not_count(name: str) -> None:
    model = small(name)
    ids = tokens(2, 41)
    mask = torch.rand(2, 40, generator=torch.Generator().manual_seed(0)) < 0.5
    found = model.evaluate(ids[:, :-1], ids[:, 1:], loss_mask=mask)
    assert found.count == mask.sum()
    mean = model(ids[:, :-1], ids[:, 1:], loss_mask=mask).detach()
    torch.testing.assert_close(mean, found.loss_sum / found.count)
    assert (mean - model(ids[:, :-1], ids[:, 1:])).abs() > 1e-4


# Gradients, types, and the host that never waits


@every_model
def test_gradients_reach_every_parameter(name: str) -> None:
    model = small(name, tied=False)
    _, found = train_once(model, tokens(2, LENGTH + 1))
    unreached = [key for key, p in model.named_parameters() if key not in found or not found[key].any()]
    assert unreached == []
    assert all(grad.isfinite().all() for grad in found.values())


@every_model
def test_under_autocast(name: str) -> None:
    model = small(name)
    ids = tokens(2, LENGTH + 1)
    exact, _ = train_once(model, ids)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(ids[:, :-1], ids[:, 1:])
        generated = model.generate(ids[:, :4], 4, temperature=0)
    model.zero_grad()
    loss.backward()
    assert loss.dtype == torch.float32
    assert {grad.dtype for grad in gradients(model).values()} == {torch.float32}
    assert all(grad.isfinite().all() for grad in gradients(model).values())
    torch.testing.assert_close(loss.detach(), exact, rtol=0, atol=0.05)
    assert generated.shape == (2, 8)


@every_model
@pytest.mark.parametrize("documents", [False, True])
def test_recomputed_activations_give_the_same_gradients(name: str, documents: bool) -> None:
    ids = tokens(2, 66)
    options = {"doc_ids": (torch.arange(65) // 21).expand(2, 65)} if documents else {}
    (plain, wanted), (recomputed, found) = (
        train_once(small(name, recompute=recompute), ids, **options) for recompute in (False, True)
    )
    torch.testing.assert_close(recomputed, plain, rtol=0, atol=0)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-7)


@every_model
def test_no_operation_asks_for_a_number(name: str) -> None:
    model = small(name, recompute=True)
    ids = tokens(2, LENGTH + 1)
    doc_ids = (torch.arange(LENGTH) // 60).expand(2, LENGTH)
    counted = CountSyncs()
    with counted:
        for options in ({}, {"doc_ids": doc_ids, "loss_mask": doc_ids > 0}):
            model(ids[:, :-1], ids[:, 1:], **options).backward()
        model.metrics()
    assert counted.found == []


@every_model
def test_tensors_without_values_suffice(name: str) -> None:
    """Whatever asks for a value, .item() or a shape that depends on data, raises on the meta device."""
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.zeros(3, device="meta").sum().item()
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.zeros(3, device="meta").nonzero()
    model = small(name, device="meta", recompute=True)
    ids = torch.zeros(2, LENGTH, dtype=torch.int64, device="meta")
    loss = model(ids, ids, doc_ids=ids, loss_mask=ids.bool())
    loss.backward()
    assert (loss.shape, loss.dtype) == ((), torch.float32)
    assert len(gradients(model)) == len(list(model.parameters()))
    assert model.evaluate(ids, ids).count.device.type == "meta"
    assert model.generate(ids[:, :4], 5, seed=0, top_k=3, top_p=0.9).shape == (2, 9)
    assert all(value.dim() == 0 for value in model.metrics().values())


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's own, while it traces
@every_model
@pytest.mark.parametrize("recompute", [False, True])
def test_compiles(name: str, recompute: bool) -> None:
    model = small(name, recompute=recompute)
    ids = tokens(2, LENGTH + 1)
    doc_ids = (torch.arange(LENGTH) // 60).expand(2, LENGTH)
    options = {"doc_ids": doc_ids, "loss_mask": doc_ids > 0}
    eager, wanted = train_once(model, ids, **options)
    model.zero_grad()
    torch._dynamo.reset()
    model.compile(fullgraph=name not in IN_PIECES, backend="aot_eager")
    compiled = model(ids[:, :-1], ids[:, 1:], **options)
    compiled.backward()
    torch.testing.assert_close(compiled.detach(), eager)
    torch.testing.assert_close(gradients(model), wanted)


@pytest.mark.slow
# torch warns of its own torch.jit.script_method when it first imports inductor.
@pytest.mark.filterwarnings("ignore:.*script_method.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
@every_model
def test_inductor_gives_the_same_loss(name: str) -> None:
    model = small(name, depth=1)
    ids = tokens(2, 65)
    eager, wanted = train_once(model, ids)
    model.zero_grad()
    torch._dynamo.reset()
    model.compile()
    with torch._inductor.utils.fresh_cache():
        loss = model(ids[:, :-1], ids[:, 1:])
        loss.backward()
    assert torch._inductor.metrics.generated_kernel_count > 0  # else nothing would have been compiled
    torch.testing.assert_close(loss.detach(), eager, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gradients(model), wanted, rtol=1e-2, atol=1e-4)
