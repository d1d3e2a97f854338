"""What is added up: seconds by stage, and documents, bytes and tokens."""

from __future__ import annotations

import msgspec


class Stages(msgspec.Struct):
    """Seconds by stage."""

    read: float = 0.0
    tokenize: float = 0.0
    verify: float = 0.0
    write: float = 0.0

    def add(self, other: Stages) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Counts(msgspec.Struct):
    documents: int = 0
    rejects: int = 0
    input_bytes: int = 0
    text_bytes: int = 0
    tokens: int = 0
    verified: int = 0

    def add(self, other: Counts) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
