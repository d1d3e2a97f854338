"""Raw text to packed, memory-mapped tokens, once; then a training loop that never waits.

The public names below are imported on first use: `import headrace` alone costs a few milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headrace.version import __version__

if TYPE_CHECKING:
    from headrace.diagnosis.training import diagnose
    from headrace.errors import HeadraceError
    from headrace.loading import LiveText, Loader, Mixture
    from headrace.models import build_model
    from headrace.pipeline import PrepareConfig, prepare
    from headrace.sources import open_source
    from headrace.storage import TokenStore
    from headrace.tokenizers import check_parity, load_tokenizer
    from headrace.training import Run, TrainConfig, Trainer

__all__ = [
    "HeadraceError",
    "LiveText",
    "Loader",
    "Mixture",
    "PrepareConfig",
    "Run",
    "TokenStore",
    "TrainConfig",
    "Trainer",
    "__version__",
    "build_model",
    "check_parity",
    "diagnose",
    "load_tokenizer",
    "open_source",
    "prepare",
]

_HOMES = {
    "HeadraceError": "headrace.errors",
    "LiveText": "headrace.loading",
    "Loader": "headrace.loading",
    "Mixture": "headrace.loading",
    "PrepareConfig": "headrace.pipeline",
    "Run": "headrace.training",
    "TokenStore": "headrace.storage",
    "TrainConfig": "headrace.training",
    "Trainer": "headrace.training",
    "build_model": "headrace.models",
    "check_parity": "headrace.tokenizers",
    "diagnose": "headrace.diagnosis.training",
    "load_tokenizer": "headrace.tokenizers",
    "open_source": "headrace.sources",
    "prepare": "headrace.pipeline",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
