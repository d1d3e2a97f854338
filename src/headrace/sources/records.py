"""The text of a JSON record: which field holds it, and in plain words why a record has none."""

from __future__ import annotations

import json
from collections.abc import Collection

TEXT_FIELDS = ("text", "content", "article", "document", "raw_content")
LISTED_FIELDS = 8
KINDS = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object", str: "a string"}


class BadRecord(Exception):
    """A record to reject; the message is the reason."""


def choose_field(names: Collection[str], asked: str | None) -> tuple[str, ...] | None:
    """The keys that lead to the text in a record with these fields; 'meta.text' is a name, or else a path."""
    if asked is None:
        return next(((field,) for field in TEXT_FIELDS if field in names), None)
    if asked in names:
        return (asked,)
    keys = tuple(asked.split("."))
    return keys if all(keys) and keys[0] in names else None


def parse_record(line: bytes) -> object:
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise BadRecord(f"invalid UTF-8 at byte {error.start} of the line") from None
    except json.JSONDecodeError as error:
        raise BadRecord(f"broken JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise BadRecord("broken JSON: nested too deeply") from None
    except ValueError as error:  # a number of more than 4,300 digits
        raise BadRecord(f"broken JSON: {error}") from None


def text_of(record: object, keys: tuple[str, ...]) -> bytes:
    """The text under `keys`, as UTF-8."""
    value = record
    for depth, key in enumerate(keys):
        if not isinstance(value, dict):
            where = f"field {'.'.join(keys[:depth])!r}" if depth else "the record"
            raise BadRecord(f"{where} is {_kind(value)} instead of an object")
        if key not in value:
            raise BadRecord(_missing(".".join(keys[: depth + 1]), value))
        value = value[key]
    name = ".".join(keys)
    if not isinstance(value, str):
        raise BadRecord(
            f"field {name!r} is null" if value is None else f"field {name!r} is {_kind(value)} instead of text"
        )
    return encode(value, name)


def encode(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise BadRecord(f"lone surrogate \\u{code:04x} in field {name!r}, which no UTF-8 text can hold") from None


def _kind(value: object) -> str:
    return "null" if value is None else KINDS.get(type(value), type(value).__name__)


def _missing(name: str, record: dict[str, object]) -> str:
    found = [repr(field)[1:-1] for field in list(record)[:LISTED_FIELDS]]
    more = ["..."] if len(record) > LISTED_FIELDS else []
    fields = ", ".join(found + more) or "none"
    return f"no field {name!r} (fields found: {fields}); name the text field with --text-field"
