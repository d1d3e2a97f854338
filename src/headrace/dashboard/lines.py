"""A line of events.jsonl as the dashboard needs it: known fields are decoded, the rest is passed over."""

from __future__ import annotations

from typing import Any

import msgspec

Number = float | None
PHASE_OF = {"sync": "host_sync", "other": "python"}  # spans that diagnosis calls otherwise


class Line(msgspec.Struct, gc=False):
    """Any kind of event; what it has not is None."""

    kind: str = ""
    t: Number = None
    step: int | None = None
    steps: int | None = None
    loss: Number = None
    losses: list[Number] | None = None
    lr: Number = None
    grad_norm: Number = None
    tokens: int | None = None
    tokens_per_second: Number = None
    mfu: Number = None
    seconds: Number = None
    spans: dict[str, Number] | None = None
    device_spans: dict[str, Number] | None = None
    data_wait_share: Number = None
    cpu: Number = None
    memory: Number = None
    gpu: Number = None
    gpu_memory: Number = None
    skipped: Number = None
    metrics: dict[str, Number] | None = None
    sources: msgspec.Raw = msgspec.Raw()  # decoded for few of the lines
    val_loss: Number = None
    perplexity: Number = None
    accuracy: Number = None
    text: str | None = None
    prompt: str | None = None
    expected: str | None = None
    predicted: str | None = None


_decode = msgspec.json.Decoder(Line).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode


def decode_line(line: bytes) -> Line | None:
    """None for a line that was cut, or that is no event."""
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def decode_whole(line: bytes) -> dict[str, Any]:
    """The event with everything in it; for the few that are needed whole."""
    try:
        return _decode_any(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def sources_of(line: Line) -> dict[str, Any]:
    """What each source of a mixture has given up to this line."""
    return decode_whole(bytes(line.sources)) if len(line.sources) else {}


def phase_seconds(line: Line) -> dict[str, Number]:
    """Seconds by phase. On a GPU the device's own clock says where the time went, apart from the wait for data."""
    spans, device = line.spans or {}, line.device_spans
    if not device:
        return spans
    found = dict(device)
    waited = min(spans.get("data_wait") or 0.0, found.get("host_to_device") or 0.0)
    found["host_to_device"] = (found.get("host_to_device") or 0.0) - waited
    found["data_wait"] = (found.get("data_wait") or 0.0) + waited
    return found
