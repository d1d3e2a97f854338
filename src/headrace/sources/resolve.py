"""What a user typed -> the files it stands for."""

from __future__ import annotations

import difflib
import glob
import os
import re
from collections.abc import Iterable, Iterator

from headrace.errors import SourceNotFound, UsageError
from headrace.sources import catalogue, hub
from headrace.sources.hub_listing import Lister
from headrace.sources.span import SourceFile
from headrace.sources.suffixes import SUPPORTED, natural_order, recognise

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
SCHEME = re.compile(r"[a-z][a-z0-9+]*://")


def resolve(argument: str, split: str | None, revision: str | None, lister: Lister) -> list[SourceFile]:
    """The files of one argument in natural order.

    A catalogue name goes before a folder of that name, so that `prepare tinystories --out tinystories` means the same
    when it is run again; './tinystories' is the folder. OWNER/NAME is the hub's only if no such path exists.
    """
    entry = catalogue.find(argument)
    if entry and not (argument.lower() == entry.repo.lower() and os.path.exists(argument)):
        return _hub_files(entry.repo, [entry.pattern(split)], revision, argument, lister)
    if argument == catalogue.STDLIB:
        return _sorted(_local_file(path) for path in catalogue.stdlib_files())
    if argument.startswith(hub.SCHEME):
        return _address_files(argument, split, revision, lister)
    if SCHEME.match(argument):
        raise UsageError(f"{argument!r} is not a place headrace reads from. Copy it to a disk, or use {hub.SCHEME}...")
    path = os.path.expanduser(argument)
    if is_repository(path):
        return _repository_files(path, split, revision, lister)
    return _local_files(path, argument)


def on_hub(argument: str) -> bool:
    return bool(catalogue.find(argument)) or argument.startswith(hub.SCHEME) or is_repository(argument)


def is_repository(argument: str) -> bool:
    """OWNER/NAME that can mean nothing here: not a path, not in a folder that exists, not a file name we would read."""
    owner = argument.partition("/")[0]
    local = os.path.exists(argument) or os.path.isdir(owner) or recognise(argument) is not None
    return REPOSITORY.fullmatch(argument) is not None and not local


def _local_files(path: str, argument: str) -> list[SourceFile]:
    if os.path.isdir(path):
        return _some(_folder_files(path), f"The folder {argument!r} holds no file that headrace reads ({SUPPORTED}).")
    if os.path.lexists(path):
        if recognise(path) is None:
            raise UsageError(f"{argument!r} has no suffix that headrace reads ({SUPPORTED}). Rename or convert it.")
        return [_local_file(path)]
    if not glob.has_magic(path):
        raise SourceNotFound(_nothing_called(argument))
    matches = [match for match in glob.glob(path, recursive=True) if recognise(match) and not os.path.isdir(match)]
    return _some(matches, f"{argument!r} matches no file that headrace reads ({SUPPORTED}). Check the pattern.")


def _some(paths: Iterable[str], otherwise: str) -> list[SourceFile]:
    files = _sorted(_local_file(path) for path in paths)
    if not files:
        raise SourceNotFound(otherwise)
    return files


def _folder_files(path: str) -> Iterator[str]:
    """Files below a folder, links followed but no folder entered twice; hidden and unknown ones are passed over."""
    entered: set[str] = set()
    for folder, folders, files in os.walk(path, followlinks=True):
        real = os.path.realpath(folder)
        if real in entered:
            folders[:] = []
            continue
        entered.add(real)
        folders[:] = sorted((name for name in folders if not name.startswith(".")), key=natural_order)
        yield from (os.path.join(folder, name) for name in files if not name.startswith(".") and recognise(name))


def _local_file(path: str) -> SourceFile:
    path = os.path.abspath(path)
    format, compression = recognise(path) or ("text", None)
    try:
        size = os.stat(path).st_size
        if not os.access(path, os.R_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}. Mend or remove it, or leave it out.") from error
    return SourceFile(path, size, format, compression)


def _nothing_called(argument: str) -> str:
    if not re.fullmatch(r"[\w-]+", argument):
        return f"There is no file or folder {argument!r}. Check the path; from here it is {os.path.abspath(argument)}."
    close = difflib.get_close_matches(argument.lower(), catalogue.NAMES, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return (
        f"{argument!r} is no path here and no name in the catalogue.{hint} "
        f"The catalogue: {', '.join(catalogue.NAMES)}; a dataset on the hub is written OWNER/NAME."
    )


def _address_files(argument: str, split: str | None, revision: str | None, lister: Lister) -> list[SourceFile]:
    address = hub.parse(argument)
    revision = address.revision or revision
    path = address.path.strip("/")
    if not path:
        return _repository_files(address.repo, split, revision, lister)
    return _hub_files(address.repo, [path, f"{path}/**"], revision, argument, lister)


def _repository_files(repo: str, split: str | None, revision: str | None, lister: Lister) -> list[SourceFile]:
    """All Parquet files of a split, or else all JSONL files; its name stands in the path: data/train-00000.parquet."""
    files = _hub_files(repo, ["**"], revision, repo, lister)
    usable = [f for f in files if f.format == "parquet"] or [f for f in files if f.format in ("jsonl", "json")] or files
    named = [f for f in usable if _names_split(f.path, split or "train")]
    if split and not named:
        raise SourceNotFound(f"No file of {repo!r} has {split!r} in its path. Name files: {hub.SCHEME}{repo}/PATH.")
    return named or usable


def _names_split(url: str, split: str) -> bool:
    return re.search(rf"(?:^|[/_.-]){re.escape(split)}(?:[/_.-]|$)", hub.parse(url).path) is not None


def _hub_files(repo: str, patterns: list[str], revision: str | None, argument: str, lister: Lister) -> list[SourceFile]:
    files = []
    for url, size in lister.list_files(repo, patterns, revision):
        kind = recognise(url)
        if kind and "/." not in url:
            files.append(SourceFile(url, size, *kind, revision=hub.parse(url).revision))
    if not files:
        raise SourceNotFound(f"{argument!r}: {repo} has no file that matches {patterns[0]!r}. Check it on the hub.")
    return _sorted(files)


def _sorted(files: Iterable[SourceFile]) -> list[SourceFile]:
    return sorted(files, key=lambda file: natural_order(file.path))
