"""Evidence: what was measured of a training script, from any number of its processes; the rules judge it.

Whoever measures fills in what it could and leaves the rest at None, which no rule holds against anybody.
"""

from __future__ import annotations

import msgspec

from headrace.diagnosis.report import Phase, Site


class Tokenizing(msgspec.Struct, kw_only=True):
    """Calls of a tokenizer in a step, by whoever made them."""

    library: str  # tokenizers, transformers, sentencepiece, tiktoken, ...
    site: Site
    texts_per_call: float
    ms_per_text: float
    in_worker: bool = False  # of a DataLoader, or another process than the one that steps


class Copies(msgspec.Struct, kw_only=True):
    """Copies from the host to the device at one line."""

    site: Site
    blocking: bool
    pinned: bool | None = None
    bytes: float = 0.0  # in a step


class Loading(msgspec.Struct, kw_only=True):
    """A DataLoader, as it was built, and what it did."""

    site: Site
    workers: int
    batch_size: int | None = None
    pin_memory: bool = False
    cores: int = 1  # that this process may use


class Optimizing(msgspec.Struct, kw_only=True):
    name: str  # of the class
    site: Site | None = None
    parameters: int = 0  # tensors
    one_by_one: bool = False  # neither foreach nor fused
    kernels: float = 0.0  # operators in a step of it


class Stall(msgspec.Struct, kw_only=True):
    """A step that took much longer than its neighbours, and what it did in that time."""

    step: int
    ms: float
    phase: str
    site: Site | None = None


class Evidence(msgspec.Struct, kw_only=True):
    step_ms: float
    steps: int
    phases: list[Phase]
    tokens_per_second: float | None = None
    cores: int = 1
    cpu: float | None = None  # share of all cores
    gpu: float | None = None
    threads: int | None = None  # that torch computes with
    framework: str = ""  # transformers or lightning, if the loop is theirs
    busy: float | None = None  # cores kept busy by other processes
    tokenizing: list[Tokenizing] = []
    copies: list[Copies] = []
    loading: list[Loading] = []
    optimizers: list[Optimizing] = []
    stalls: list[Stall] = []
    pad_share: float | None = None  # of the tokens that the model saw
    pad_site: Site | None = None
    files_per_step: float | None = None  # opened for reading
    bytes_per_file: float | None = None
    file_site: Site | None = None
    without_gradient: list[str] = []  # parameters of the optimizer that never had one
    losses: list[float] = []  # in the order of the steps, as far as they were seen
    loss_site: Site | None = None
    missing: list[str] = []
