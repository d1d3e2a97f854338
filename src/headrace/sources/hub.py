"""Datasets on the Hugging Face hub: addresses, what matches a pattern at one commit, and what the cache holds."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from headrace.errors import SourceNotFound
from headrace.hub import Repository, commit_of, explained, get, library, patiently
from headrace.sources import catalogue

SCHEME = "hf://datasets/"
ADDRESS = re.compile(r"hf://datasets/(?P<repo>[^/@]+/[^/@]+)(?:@(?P<revision>[^/]+))?(?:/(?P<path>.*))?")


class Address(NamedTuple):
    repo: str
    revision: str | None
    path: str

    @property
    def repository(self) -> Repository:
        return Repository("dataset", self.repo, self.revision)


def parse(url: str) -> Address:
    """hf://datasets/OWNER/NAME[@REVISION][/PATH]; a slash in a revision is written %2F."""
    match = ADDRESS.fullmatch(url)
    if match is None:
        raise SourceNotFound(f"{url!r} is not of the form hf://datasets/OWNER/NAME[@REVISION]/PATH. Write it so.")
    revision = match["revision"]
    return Address(match["repo"], unquote(revision) if revision else None, match["path"] or "")


def list_matching(repo: str, patterns: Iterable[str], revision: str | None) -> tuple[str, list[tuple[str, int]]]:
    """The commit, and (path, size) of the files that match one of the patterns at that commit."""
    wanted = list(patterns)
    expressions = [glob_expression(pattern) for pattern in wanted]
    commit, files = list_tree(repo, common_folder(wanted), revision)
    return commit, [file for file in files if any(expression.fullmatch(file[0]) for expression in expressions)]


def list_tree(repo: str, folder: str, revision: str | None) -> tuple[str, list[tuple[str, int]]]:
    """The commit a revision stands for now, and (path, size) of every file below a folder at that commit."""
    repository = Repository("dataset", repo, revision)
    with explained(repository, SourceNotFound, _near(repo)):
        commit = commit_of(repository)
        try:
            return commit, list(_files_below(repository, folder, commit))
        except library().errors.EntryNotFoundError:
            return commit, []


def _files_below(repository: Repository, folder: str, commit: str) -> Iterator[tuple[str, int]]:
    """Page by page: the hub gives 1,000 entries at a time, and SlimPajama has 59,166 files."""
    url = f"{repository.api}/tree/{quote(commit, safe='')}{'/' if folder else ''}{quote(folder)}"
    query = {"recursive": "true"}
    while url:
        page = _page(url, query)
        yield from ((entry["path"], entry["size"]) for entry in page.json() if entry["type"] == "file")
        url, query = page.links.get("next", {}).get("url", ""), {}


def _page(url: str, query: dict[str, str]) -> Any:
    return patiently(lambda: get(url, **query))


def _near(repo: str) -> str:
    """A hint where a missing repository looks like one of the catalogue's."""
    names = {spelling.lower(): entry for entry in catalogue.ENTRIES for spelling in (entry.repo, *_short(entry))}
    found = difflib.get_close_matches(repo.lower(), names, 1) or difflib.get_close_matches(_name(repo), names, 1)
    if not found or names[found[0]].repo.lower() == repo.lower():
        return ""
    entry = names[found[0]]
    return f" Did you mean {entry.name!r} ({entry.repo})?"


def _short(entry: catalogue.Entry) -> tuple[str, ...]:
    return (entry.name, *entry.aliases, _name(entry.repo))


def _name(repo: str) -> str:
    return repo.rpartition("/")[2].lower()


def cached(url: str) -> str | None:
    """The path of a file that lies in the hub's cache already."""
    address = parse(url)
    found = library().try_to_load_from_cache(address.repo, address.path, revision=address.revision, repo_type="dataset")
    return found if isinstance(found, str) else None


def glob_expression(pattern: str) -> re.Pattern[str]:
    """A glob as in a shell: * stays within a folder, **/ spans any number of them."""
    spelled = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    tokens = re.findall(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]|.", pattern)
    return re.compile("".join(spelled.get(t) or (_character_class(t) if len(t) > 1 else re.escape(t)) for t in tokens))


def _character_class(token: str) -> str:
    inner = token[1:-1].replace("\\", "\\\\")
    return f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"


def common_folder(patterns: Iterable[str]) -> str:
    """The folder above the first wildcard, when all share it: listing 'train' is cheaper than listing everything."""
    folders = {re.split(r"[*?\[]", pattern)[0].rpartition("/")[0] for pattern in patterns}
    return folders.pop() if len(folders) == 1 else ""
