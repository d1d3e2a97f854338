"""Every error a user can meet.

HeadraceError              exit code 1
├── UsageError             2   a flag, name or path that cannot be right
│   ├── SourceNotFound         nothing matches the path, glob or name
│   └── TokenizerError         not a tokenizer, or one that cannot do what was asked
├── DataRejected           3   too many bad records, or a damaged file
├── StoreError             1   a dataset on disk that is not what its manifest says
├── WorkerDied             1   a task whose worker ended again and again
├── TrainingFailed         1   a run that cannot go on as it is: a loss that is no number, out of memory
├── OutOfSpace             1   the disk is full
├── Unreachable            1   a place on the network that does not answer
├── Busy                   1   another process holds the output folder
├── Interrupted            75  stopped half-way; the same command goes on
└── MissingDependency      1   an optional package that names the extra that brings it
"""

from __future__ import annotations


class HeadraceError(Exception):
    """An error with a message fit for a person: the value, the rule it broke, the next step."""

    exit_code = 1


class UsageError(HeadraceError):
    exit_code = 2


class SourceNotFound(UsageError):
    pass


class TokenizerError(UsageError):
    pass


class DataRejected(HeadraceError):
    exit_code = 3


class StoreError(HeadraceError):
    pass


class WorkerDied(HeadraceError):
    pass


class TrainingFailed(HeadraceError):
    pass


class OutOfSpace(HeadraceError):
    pass


class Unreachable(HeadraceError):
    pass


class Busy(HeadraceError):
    pass


class Interrupted(HeadraceError):
    exit_code = 75


class MissingDependency(HeadraceError):
    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}. Run: pip install 'headrace[{extra}]'")
