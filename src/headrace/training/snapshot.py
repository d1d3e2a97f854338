"""A copy of a run's state in host memory, which training can no longer change and weights_only can read back."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headrace.errors import UsageError

NUMPY = "__numpy__"  # an array is stored as {NUMPY: tensor}
TENSORS = (Tensor, torch.nn.Parameter)
PLAIN = (type(None), bool, float, complex, str, bytes, torch.dtype, torch.device, torch.Size)
MAPPINGS = (dict, OrderedDict, Counter)
SEQUENCES = (list, tuple, set)
LARGEST_INT_BITS = 2000  # weights_only has no opcode for integers above 255 bytes


@dataclass(frozen=True)
class Snapshot:
    model: dict[str, Tensor]
    aliases: dict[str, str]  # tied weights: a name, and the name under which its tensor is stored
    state: dict[str, Any]
    nbytes: int


def take_snapshot(model_state: Mapping[str, Tensor], state: dict[str, Any]) -> Snapshot:
    """Copy every tensor to the host, tied ones once, and wait for the devices a single time."""
    copies = _HostCopies()
    model, aliases = _copy_model(model_state, copies)
    kept = _freeze(state, "state", copies)
    copies.finish()
    return Snapshot(model=model, aliases=aliases, state=kept, nbytes=copies.nbytes)


def thaw(value: Any) -> Any:
    """Undo what `take_snapshot` did to numpy arrays; everything else is as it was."""
    if type(value) in MAPPINGS:
        if value.keys() == {NUMPY}:
            return value[NUMPY].numpy()
        return type(value)({key: thaw(entry) for key, entry in value.items()})
    if type(value) in SEQUENCES:
        return type(value)(thaw(entry) for entry in value)
    return value


class _HostCopies:
    """Copies a piece of memory once, however many tensors show it: bitsandbytes' maps, tied embeddings."""

    def __init__(self) -> None:
        # The source is kept beside its copy: memory that is given back could return at the same address.
        self._copies: dict[tuple[Any, ...], tuple[Tensor, Tensor]] = {}
        self._cuda_devices: set[torch.device] = set()

    @property
    def nbytes(self) -> int:
        return sum(copy.nbytes for _, copy in self._copies.values())

    def take(self, tensor: Tensor, memory_format: torch.memory_format) -> Tensor:
        tensor = tensor.detach().resolve_conj().resolve_neg()
        key = _place(tensor, memory_format)
        if key not in self._copies or not tensor.numel():
            self._copies[key] = tensor, self._copy(tensor, memory_format)
        return self._copies[key][1]

    def finish(self) -> None:
        for device in self._cuda_devices:
            torch.cuda.current_stream(device).synchronize()

    def _copy(self, tensor: Tensor, memory_format: torch.memory_format) -> Tensor:
        # Only a copy into pinned memory runs beside the others; torch keeps such memory for the next snapshot.
        copy = torch.empty_like(tensor, device="cpu", memory_format=memory_format, pin_memory=tensor.is_cuda)
        if tensor.is_cuda:
            self._cuda_devices.add(tensor.device)
        return copy.copy_(tensor, non_blocking=tensor.is_cuda)


def _place(tensor: Tensor, memory_format: torch.memory_format) -> tuple[Any, ...]:
    storage = tensor.untyped_storage().data_ptr(), tensor.storage_offset()
    return (tensor.device, *storage, tensor.shape, tensor.stride(), tensor.dtype, memory_format)


def _copy_model(model_state: Mapping[str, Tensor], copies: _HostCopies) -> tuple[dict[str, Tensor], dict[str, str]]:
    """safetensors refuses tensors that share memory, so a tied weight is stored under its first name alone."""
    model: dict[str, Tensor] = {}
    aliases: dict[str, str] = {}
    first_names: dict[int, str] = {}
    for name, tensor in model_state.items():
        copy = copies.take(_checked(tensor, f"model_state[{name!r}]"), torch.contiguous_format)
        first = first_names.setdefault(id(copy), name)
        if first == name:
            model[name] = copy
        else:
            aliases[name] = first
    return model, aliases


def _freeze(value: Any, where: str, copies: _HostCopies) -> Any:
    if isinstance(value, Tensor):
        return copies.take(_checked(value, where), torch.preserve_format)
    if isinstance(value, np.ndarray):
        return {NUMPY: _from_numpy(value, where)}
    if isinstance(value, np.generic):
        return _freeze(value.item(), where, copies)
    if type(value) in MAPPINGS:
        return type(value)({key: _freeze(entry, f"{where}[{key!r}]", copies) for key, entry in value.items()})
    if type(value) in SEQUENCES:
        return type(value)(_freeze(entry, f"{where}[{index}]", copies) for index, entry in enumerate(value))
    if type(value) in PLAIN or (type(value) is int and value.bit_length() <= LARGEST_INT_BITS):
        return value
    raise UsageError(
        f"{where} is a {type(value).__module__}.{type(value).__qualname__}, which a checkpoint cannot hold: it is read "
        f"back without running code (weights_only). Store it as tensors, arrays, numbers, strings, lists and dicts."
    )


def _checked(tensor: Any, where: str) -> Tensor:
    """A tensor of a class of its own (DTensor, quantized) would need its code to be read back."""
    if isinstance(tensor, Tensor) and type(tensor) in TENSORS and tensor.layout is torch.strided and not tensor.is_meta:
        return tensor
    kind = f"{tensor.layout} {type(tensor).__name__}" if isinstance(tensor, Tensor) else type(tensor).__name__
    raise UsageError(
        f"{where} is a {kind}; a checkpoint holds plain dense tensors. "
        f"Turn it into one first: full_tensor() for a DTensor, dequantize() or to_dense() for others."
    )


def _from_numpy(array: np.ndarray[Any, Any], where: str) -> Tensor:
    try:
        return torch.from_numpy(np.array(array, order="C"))
    except TypeError as error:
        raise UsageError(f"{where} is an array of {array.dtype}, a type that torch lacks. Store numbers.") from error
