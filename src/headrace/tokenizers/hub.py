"""Tokenizer files from the Hugging Face hub, by way of its own cache: only these, and all of one commit."""

from __future__ import annotations

from pathlib import Path

from headrace.errors import TokenizerError, Unreachable
from headrace.hub import Repository, commit_of, explained, library

MAIN = ("tokenizer.json", "tekken.json", "tokenizer.model")  # the first that there is
BESIDE = ("tokenizer_config.json", "special_tokens_map.json")  # they name the control tokens


def fetch_tokenizer(name: str) -> Path:
    """The folder that holds the files of OWNER/NAME or OWNER/NAME@REVISION."""
    repo, _, revision = name.partition("@")
    repository = Repository("model", repo, revision or None)
    try:
        with explained(repository, TokenizerError):
            commit_of(repository)  # patient, but not for ever, and what it raises says what is wrong
            folder = _download_all(repo, revision or "main")
    except Unreachable:
        folder = _cached_folder(repo, revision or "main")
        if folder is None:
            raise
    if folder is None:
        raise TokenizerError(f"The model {repo!r} on the hub has none of {', '.join(MAIN)}. Look at {repository.page}.")
    return folder


def _download_all(repo: str, revision: str) -> Path | None:
    for main in MAIN:
        if (path := _download(repo, main, revision)) is not None:
            for beside in BESIDE:
                if _cached(repo, beside, path.parent.name) is None:
                    _download(repo, beside, path.parent.name)  # the folder's name is the commit
            return path.parent
    return None


def _download(repo: str, file: str, revision: str) -> Path | None:
    """None for a file that the repository has not."""
    hub = library()
    try:
        limit, endpoint = hub.constants.HF_HUB_ETAG_TIMEOUT, hub.constants.ENDPOINT
        return Path(hub.hf_hub_download(repo, file, revision=revision, etag_timeout=limit, endpoint=endpoint))
    except hub.errors.LocalEntryNotFoundError:
        raise  # the hub did not answer; this is a kind of the next one
    except hub.errors.EntryNotFoundError:
        return None


def _cached_folder(repo: str, revision: str) -> Path | None:
    """What an earlier download left, if each file beside the main one is there or is known not to exist.

    Without them a tokenizer may have other control tokens, and so other data.
    """
    for main in MAIN:
        if isinstance(path := _cached(repo, main, revision), str):
            folder = Path(path).parent
            return folder if all(_cached(repo, beside, folder.name) is not None for beside in BESIDE) else None
    return None


def _cached(repo: str, file: str, revision: str) -> object:
    """Its path; a mark where the repository is known not to have it; None where nothing is known."""
    found: object = library().try_to_load_from_cache(repo, file, revision=revision)
    return found
