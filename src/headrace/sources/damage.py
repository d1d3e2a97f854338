"""Damaged files: how a reader reports one, and the error a user sees."""

from __future__ import annotations

from headrace.errors import DataRejected


class Damaged(Exception):
    """Raised by a reader after it has given every document before the damage."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where = where
        self.problem = problem


def refusal(path: str, damage: Damaged, documents: int) -> DataRejected:
    kept = f"the {documents:,} document{'s' if documents != 1 else ''} before the damage"
    return DataRejected(
        f"{path} is damaged at {damage.where}: {damage.problem}. "
        f"Fetch the file again, or pass --keep-damaged to keep {kept}."
    )
