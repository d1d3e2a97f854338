"""build_model: a model by its name and size, or by the name of a user's own function."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import torch
from torch import Tensor, nn

from headrace.errors import UsageError
from headrace.models.base import LanguageModel
from headrace.models.generation import evaluating
from headrace.models.neurogen import NeuroGen
from headrace.models.ten import TEN
from headrace.models.transformer import Transformer

MODELS: dict[str, type[LanguageModel]] = {"transformer": Transformer, "ten": TEN, "neurogen": NeuroGen}

Device = str | torch.device | None
PLAIN = (bool, int, float, str, list, dict, type(None))


def build_model(
    name: str,
    size: str = "micro",
    *,
    vocab_size: int,
    context: int | None = None,
    device: Device = None,
    dtype: torch.dtype | None = None,
    seed: int = 0,
    **options: Any,
) -> Any:
    """A model with fresh parameters, the same for the same seed and kind of device.

    `name` is one of MODELS, or a function of yours as `package.module:function` or `path/to/file.py:function`. It is
    called with vocab_size, size, the options, and context if one is given, and returns a torch.nn.Module whose
    forward(tokens, targets) returns the loss.
    """
    given = options if context is None else {**options, "context": context}
    if ":" in name:
        return _build_from_user(name, device, dtype, seed, vocab_size=vocab_size, size=size, **given)
    config = _config(name, size, vocab_size=vocab_size, **given)
    with torch.device("meta"):  # no memory and no random numbers spent on values that are overwritten
        model = MODELS[name](config)
    model = model.to(dtype).to_empty(device=device or torch.get_default_device())
    model.initialise(seed)
    return model


def describe_model(model: nn.Module) -> dict[str, Any]:
    """What build_model has to be told to make this model again; nothing for one that is not of MODELS."""
    name = next((name for name, kind in MODELS.items() if type(model) is kind), None)
    if name is None or not isinstance(model, LanguageModel):
        return {}
    options = dataclasses.asdict(model.config)  # type: ignore[call-overload]
    vocab_size, context = options.pop("vocab_size"), options.pop("context")
    size = next(iter(MODELS[name].sizes))  # every one of its fields is overridden
    told = {"name": name, "size": size, "vocab_size": vocab_size, "context": context, "options": options}
    return {"model": told}


def forward_options(model: nn.Module) -> set[str]:
    """Which of doc_ids and loss_mask the model's forward takes."""
    parameters = inspect.signature(model.forward).parameters
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return {name for name in ("doc_ids", "loss_mask") if anything or name in parameters}


def _config(name: str, size: str, **options: Any) -> Any:
    if name not in MODELS:
        raise UsageError(
            f"model {name!r}: there is {', '.join(MODELS)}. For a function of yours give package.module:function or "
            f"path/to/file.py:function."
        )
    model = MODELS[name]
    if size not in model.sizes:
        raise UsageError(f"size {size!r}: {name} comes in {', '.join(model.sizes)}.")
    known = [field.name for field in dataclasses.fields(model.config_type)]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise UsageError(f"option {unknown[0]!r}: {name} has {', '.join(known)}.")
    _check_types(name, options)
    return model.config_type(**{**model.sizes[size], **options})


def _check_types(name: str, options: dict[str, Any]) -> None:
    """A word where a number belongs is refused by name; what is no plain value passes."""
    hints = get_type_hints(MODELS[name].config_type)
    for option, value in options.items():
        kinds = get_args(hints[option]) or (hints[option],)
        if type(value) in PLAIN and not {type(value), *({float} if type(value) is int else ())} & set(kinds):
            wanted = " or ".join(getattr(kind, "__name__", str(kind)) for kind in kinds)
            raise UsageError(f"option {option} {value!r}: {name} takes {wanted.replace('NoneType', 'None')} there.")


def _build_from_user(name: str, device: Device, dtype: torch.dtype | None, seed: int, **options: Any) -> nn.Module:
    function = _user_function(name)
    target = torch.device(device) if device is not None else torch.get_default_device()
    with torch.random.fork_rng(devices=[target] if target.type == "cuda" else []), target:
        torch.manual_seed(seed)
        model = function(**options)
    if not isinstance(model, nn.Module):
        raise UsageError(f"{name} returned {type(model).__name__}: it must return a torch.nn.Module.")
    model = model.to(device=target, dtype=dtype)
    _check_loss(name, model, target)
    return model


def _check_loss(name: str, model: nn.Module, device: torch.device) -> None:
    """Ask for the loss of two tokens, so that a wrong model is known before a run begins."""
    rule = "forward(tokens, targets) takes two tensors of ids, [B, L], and returns the loss, a scalar with a gradient"
    tokens = torch.zeros(1, 2, dtype=torch.int64, device=device)
    devices = [device] if device.type == "cuda" else []
    try:
        inspect.signature(model.forward).bind(tokens, tokens)
    except TypeError as error:
        raise UsageError(f"The model of {name} cannot be called with tokens and targets: {error}. {rule}.") from error
    with evaluating(model), torch.random.fork_rng(devices=devices):
        loss = model(tokens, tokens)
    found = f"shape {list(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
    if not isinstance(loss, Tensor) or loss.dim() or not loss.requires_grad:
        raise UsageError(f"The model of {name} returned {found} for the loss of two tokens: {rule}.")


def _user_function(name: str) -> Callable[..., Any]:
    place, _, attribute = name.rpartition(":")
    module = _module_from_file(Path(place)) if place.endswith(".py") else _module_by_name(place)
    function = getattr(module, attribute, None)
    if not callable(function):
        found = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise UsageError(f"{name}: {place} has no function {attribute!r}. It has: {', '.join(found) or 'none'}.")
    return function  # type: ignore[no-any-return]


def _module_from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file. Give the path as seen from {Path.cwd()}, or an absolute one.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses and pickle look a class's module up here
    spec.loader.exec_module(module)
    return module


def _module_by_name(name: str) -> ModuleType:
    """As `python -m` would find it: the working folder counts, which a console script leaves out."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module is there; what it imports is not
        raise UsageError(
            f"module {name!r} cannot be imported from {Path.cwd()}: {error}. "
            f"For a function in a file give its path: path/to/file.py:function."
        ) from error
    finally:
        sys.path.remove(str(Path.cwd()))
