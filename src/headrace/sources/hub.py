"""The Hugging Face hub: list a dataset's files at one commit, fetch one of them into the hub's own cache."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import NamedTuple
from urllib.parse import quote, unquote

from headrace.errors import HeadraceError, SourceNotFound

SCHEME = "hf://datasets/"
ADDRESS = re.compile(r"hf://datasets/(?P<repo>[^/@]+/[^/@]+)(?:@(?P<revision>[^/]+))?(?:/(?P<path>.*))?")


class Address(NamedTuple):
    repo: str
    revision: str | None
    path: str


def parse(url: str) -> Address:
    """hf://datasets/OWNER/NAME[@REVISION][/PATH]; a slash in a revision is written %2F."""
    match = ADDRESS.fullmatch(url)
    if match is None:
        raise SourceNotFound(f"{url!r} is not of the form hf://datasets/OWNER/NAME[@REVISION]/PATH. Write it so.")
    revision = match["revision"]
    return Address(match["repo"], unquote(revision) if revision else None, match["path"] or "")


def list_files(repo: str, patterns: Iterable[str], revision: str | None) -> list[tuple[str, int]]:
    """(URL pinned to a commit, size) of the files that match one of the patterns."""
    wanted = list(patterns)
    expressions = [glob_expression(pattern) for pattern in wanted]
    commit, files = list_tree(repo, common_folder(wanted), revision)
    return [
        (f"{SCHEME}{repo}@{quote(commit, safe='')}/{path}", size)
        for path, size in files
        if any(expression.fullmatch(path) for expression in expressions)
    ]


def list_tree(repo: str, folder: str, revision: str | None) -> tuple[str, list[tuple[str, int]]]:
    """The commit a revision stands for now, and (path, size) of every file below a folder at that commit."""
    hub = _hub()
    with _explained(repo, revision):
        api = hub.HfApi()
        commit = str(api.dataset_info(repo, revision=revision).sha)
        try:
            tree = api.list_repo_tree(repo, folder or None, recursive=True, revision=commit, repo_type="dataset")
            return commit, [(entry.path, entry.size) for entry in tree if hasattr(entry, "size")]
        except hub.errors.EntryNotFoundError:
            return commit, []


def fetch(url: str) -> str:
    """The local path of a hub file; downloaded once, then served from the cache."""
    address = parse(url)
    with _explained(address.repo, address.revision):
        path = _hub().hf_hub_download(address.repo, address.path, repo_type="dataset", revision=address.revision)
    return str(path)


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


def _hub() -> ModuleType:
    import huggingface_hub  # half a second, so only when the hub is asked for
    import huggingface_hub.errors

    return huggingface_hub


@contextmanager
def _explained(repo: str, revision: str | None) -> Iterator[None]:
    """Turns the hub's errors into ours. Order matters: a gated repository is also a RepositoryNotFoundError."""
    errors = _hub().errors
    try:
        yield
    except errors.GatedRepoError as error:
        raise SourceNotFound(
            f"The dataset {repo!r} is gated. Accept its terms at https://huggingface.co/datasets/{repo}, "
            "run 'hf auth login', then run the same command again."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise SourceNotFound(
            f"The dataset {repo!r} has no revision {revision!r}. Leave out --revision for the newest."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise SourceNotFound(
            f"The hub has no public dataset {repo!r}. Check the spelling; for a private one run 'hf auth login' first."
        ) from error
    except errors.EntryNotFoundError as error:
        if isinstance(error, FileNotFoundError):  # not in the cache, and the hub could not be asked
            raise _unreachable(repo, error) from error
        raise SourceNotFound(f"The dataset {repo!r} no longer has this file: {error}. Check it on the hub.") from error
    except HeadraceError:
        raise
    except Exception as error:  # whatever the HTTP library of this version of the hub raises
        if isinstance(error, (OSError, errors.HfHubHTTPError)) or "Connect" in type(error).__name__:
            raise _unreachable(repo, error) from error
        raise


def _unreachable(repo: str, error: Exception) -> HeadraceError:
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    return HeadraceError(
        f"The Hugging Face hub could not be reached for {repo!r} ({reason}). Check the network and HF_HUB_OFFLINE, "
        "or name local files; 'python-stdlib' needs no network."
    )
