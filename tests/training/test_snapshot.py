"""A snapshot is a copy, keeps what is shared shared, and refuses at once what could not be read back."""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict, defaultdict, namedtuple
from typing import Any

import numpy as np
import pytest
import torch

from headrace.errors import UsageError
from headrace.training.snapshot import take_snapshot, thaw


def frozen(value: Any) -> Any:
    return take_snapshot({}, {"value": value}).state["value"]


def test_later_changes_are_not_seen() -> None:
    weight, moment, array, losses = torch.ones(3), torch.ones(3), np.ones(3), [1.0]
    snapshot = take_snapshot({"w": weight}, {"m": moment, "a": array, "losses": losses})
    weight.zero_(), moment.zero_(), array.fill(0), losses.append(2.0)
    state = thaw(snapshot.state)
    assert snapshot.model["w"].tolist() == state["m"].tolist() == state["a"].tolist() == [1, 1, 1]
    assert state["losses"] == [1.0]


def test_tied_weights_are_stored_once() -> None:
    weight = torch.nn.Parameter(torch.randn(10, 4))
    snapshot = take_snapshot({"embed": weight, "other": weight.detach().clone(), "head": weight.detach()}, {})
    assert snapshot.aliases == {"head": "embed"}
    assert list(snapshot.model) == ["embed", "other"]
    assert snapshot.nbytes == 2 * 160


def test_different_views_of_one_memory_are_not_tied() -> None:
    base = torch.arange(12.0)
    views = {"first": base[:6], "second": base[6:], "square": base[:6].view(2, 3), "turned": base[:6].view(2, 3).T}
    snapshot = take_snapshot(views, {})
    assert snapshot.aliases == {}
    for name, view in views.items():
        assert torch.equal(snapshot.model[name], view)
        assert snapshot.model[name].is_contiguous()


def test_empty_tensors_are_not_tied() -> None:
    snapshot = take_snapshot({"a": torch.empty(0), "b": torch.empty(0), "c": torch.empty(0, 3)}, {})
    assert snapshot.aliases == {}
    assert snapshot.model["c"].shape == (0, 3)


def test_a_small_view_does_not_bring_its_whole_memory() -> None:
    snapshot = take_snapshot({"w": torch.zeros(1_000_000)[:4]}, {"m": torch.zeros(1_000_000)[:4]})
    assert snapshot.model["w"].untyped_storage().nbytes() == snapshot.state["m"].untyped_storage().nbytes() == 16


def test_state_keeps_sharing_and_strides() -> None:
    table, image = torch.randn(256), torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    state = frozen([table, {"map": table}, image])
    assert state[0] is state[1]["map"]
    assert state[2].stride() == image.stride()
    assert torch.equal(state[2], image)


def test_a_gradient_history_is_left_behind() -> None:
    weight = torch.ones(3, requires_grad=True)
    snapshot = take_snapshot({"w": weight * 2}, {"w": weight})
    assert not snapshot.model["w"].requires_grad
    assert not snapshot.state["w"].requires_grad


ORDINARY = [None, True, -5, 2**128 + 1, 0.1, 1j, "é", b"\x00", (1, [2, (3,)]), {1: {"a": ()}}, {1, 2}, torch.bfloat16]
FROM_STATES = [OrderedDict(b=1, a=2), Counter("aab"), torch.Size([2]), {}, [], (), float("inf")]


@pytest.mark.parametrize("value", [*ORDINARY, *FROM_STATES], ids=repr)
def test_plain_values_stay_what_they_are(value: Any) -> None:
    result = thaw(frozen(value))
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "u4", "u8", "?", "c8"])
def test_numpy_arrays_come_back_as_arrays(dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    for source in (array, array.T, array[:, ::-1], array[0, 0:1]):
        result = thaw(frozen({"nested": (source,)}))["nested"][0]
        assert isinstance(result, np.ndarray)
        assert result.dtype == source.dtype
        np.testing.assert_array_equal(result, source)


def test_numpy_scalars_become_python_numbers() -> None:
    result = frozen([np.float64(0.1), np.int32(7), np.bool_(True)])
    assert result == [0.1, 7, True]
    assert [type(entry) for entry in result] == [float, int, bool]


class Colour(enum.IntEnum):
    RED = 1


Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    "value",
    [print, Colour.RED, Pair(1, 2), defaultdict(int), range(3), frozenset(), 1 << 3000, torch.Generator()],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_read_back_is_refused_with_its_place(value: Any) -> None:
    with pytest.raises(UsageError, match=r"state\['value'\]\['a'\]\[1\] is a .*, which a checkpoint cannot hold"):
        frozen({"a": [0, value]})


class Own(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "tensor",
    [torch.eye(3).to_sparse(), torch.empty(3, device="meta"), torch.ones(3).as_subclass(Own), "text"],
    ids=["sparse", "meta", "subclass", "no tensor"],
)
def test_only_plain_tensors_are_weights(tensor: Any) -> None:
    with pytest.raises(UsageError, match=r"model_state\['w'\] is a .*plain dense tensors"):
        take_snapshot({"w": tensor}, {})


def test_arrays_that_torch_has_no_type_for() -> None:
    with pytest.raises(UsageError, match=r"state\['value'\] is an array of <U1"):
        frozen(np.array(["a"]))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_tensors_arrive_on_the_host() -> None:
    weight = torch.arange(1_000_000.0, device="cuda")
    snapshot = take_snapshot({"w": weight}, {"m": weight * 2})
    weight.zero_()
    assert snapshot.model["w"].is_pinned()
    assert torch.equal(snapshot.model["w"], torch.arange(1_000_000.0))
    assert torch.equal(snapshot.state["m"], torch.arange(1_000_000.0) * 2)
