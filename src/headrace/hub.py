"""The Hugging Face hub, through huggingface_hub: one way to ask, patience with the network, and errors in our words.

HF_ENDPOINT, HF_HOME, HF_TOKEN, HF_HUB_OFFLINE and the hub's time limits mean here what they mean there. The library's
own listing has no time limit and a hub that stalls would hold it for ever, so questions are asked here, in its session.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from headrace.errors import HeadraceError, Unreachable, UsageError

WAITS = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds before each further attempt: an outage of 15 s is sat out
LONGEST_WAIT = 300  # seconds; what a hub that limits its callers may ask for
PASSING = (408, 425, 429, 500, 502, 503, 504)
HTTP_LIBRARIES = ("httpx", "httpx2", "requests", "urllib3")  # that versions of huggingface_hub use

T = TypeVar("T")


class Repository(NamedTuple):
    kind: str  # dataset or model
    name: str
    revision: str | None = None  # None: the newest

    @property
    def page(self) -> str:
        """Where a person looks at it."""
        return f"{endpoint()}/{'datasets/' if self.kind == 'dataset' else ''}{quote(self.name)}"

    @property
    def api(self) -> str:
        return f"{endpoint()}/api/{self.kind}s/{quote(self.name)}"


def library() -> ModuleType:
    import huggingface_hub  # half a second, so only when the hub is asked for
    import huggingface_hub.constants
    import huggingface_hub.errors
    import huggingface_hub.utils

    return huggingface_hub


def endpoint() -> str:
    return str(library().constants.ENDPOINT)


def commit_of(repository: Repository) -> str:
    """The commit that the revision stands for now."""
    named = f"/revision/{quote(repository.revision, safe='')}" if repository.revision else ""
    return str(patiently(lambda: get(repository.api + named)).json()["sha"])


def get(url: str, **query: Any) -> Any:
    """The whole answer, or an error; no byte within the time limit is an error too."""
    return _send(url, _headers(url), **query)


def get_range(url: str, start: int, stop: int) -> Any:
    headers = {**_headers(url), "Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
    return _send(url, headers)


def _send(url: str, headers: dict[str, str], **query: Any) -> Any:
    hub = library()
    limit = hub.constants.HF_HUB_DOWNLOAD_TIMEOUT
    response = hub.utils.get_session().get(url, headers=headers, params=query or None, timeout=limit)
    hub.utils.hf_raise_for_status(response)
    return response


def _headers(url: str) -> dict[str, str]:
    """The token goes to the endpoint and to nobody else: files lie on other machines, behind signed addresses."""
    headers: dict[str, str] = library().utils.build_hf_headers(library_name="headrace")
    if _origin(url) != _origin(endpoint()):
        headers.pop("authorization", None)
    return headers


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def patiently(call: Callable[[], T]) -> T:
    """Call again after a server's error, a time-out or a cut connection, with longer and longer waits."""
    for wait in WAITS:
        try:
            return call()
        except Exception as error:
            if not passes(error):
                raise
            time.sleep(max(wait, _asked_wait(error)))
    return call()


def passes(error: Exception) -> bool:
    """Whether the same request may succeed a little later."""
    status = status_of(error)
    return status in PASSING if status is not None else _is_network(error) and not _is_offline(error)


def status_of(error: BaseException | None) -> int | None:
    """The HTTP status that an error of huggingface_hub stands for."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return int(status) if isinstance(error, library().errors.HfHubHTTPError) and status is not None else None


def _asked_wait(error: Exception) -> float:
    asked = getattr(getattr(error, "response", None), "headers", {}).get("Retry-After", "")
    return min(float(asked), LONGEST_WAIT) if asked.isdecimal() else 0.0


def _is_network(error: BaseException) -> bool:
    of_library = type(error).__module__.partition(".")[0] in HTTP_LIBRARIES
    return of_library or isinstance(error, (ConnectionError, TimeoutError))


def _is_offline(error: BaseException | None) -> bool:
    return isinstance(error, library().errors.OfflineModeIsEnabled)


@contextmanager
def explained(repository: Repository, missing: type[UsageError], hint: str = "") -> Iterator[None]:
    """Turn the hub's errors into ours; `missing` is raised where the fault is in what was asked for."""
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:
        found = _in_our_words(repository, error, missing, hint)
        if found is None:
            raise
        raise found from error


def _in_our_words(
    repository: Repository, error: Exception, missing: type[UsageError], hint: str
) -> HeadraceError | None:
    """Order matters: a gated repository is also a RepositoryNotFoundError, and both are HTTP errors."""
    errors = library().errors
    kind, name, revision = repository
    if isinstance(error, errors.GatedRepoError):
        return missing(_gated(repository))
    if isinstance(error, errors.RevisionNotFoundError):
        return missing(f"The {kind} {name!r} has no revision {revision!r}. Leave the revision out for the newest.")
    if isinstance(error, errors.RepositoryNotFoundError):
        return missing(
            f"The hub has no public {kind} {name!r} (asked: {endpoint()}).{hint} Check the spelling; "
            "for a private one set HF_TOKEN to a token that may read it."
        )
    if isinstance(error, errors.LocalEntryNotFoundError):
        return unreachable(repository, error.__cause__ or error)
    if isinstance(error, errors.EntryNotFoundError):
        return missing(f"The {kind} {name!r} has no such file: {reason_of(error)}. Look at {repository.page}.")
    if status_of(error) in (401, 403):
        return missing(
            f"The hub refused the {kind} {name!r} ({reason_of(error)}). Set HF_TOKEN to a valid token that may read it."
        )
    if status_of(error) is not None or _is_network(error):
        return unreachable(repository, error)
    if isinstance(error, errors.HFValidationError):
        return missing(f"{name!r} is no name of a {kind}: {reason_of(error)}. Write it as OWNER/NAME.")
    if isinstance(error, (ValueError, KeyError, TypeError)):  # an answer that is no JSON, or other JSON
        return Unreachable(f"{endpoint()} does not answer as a hub does when asked for {name!r}. Check HF_ENDPOINT.")
    return None


def _gated(repository: Repository) -> str:
    whose = "" if library().get_token() is None else " with the account of your token, which has no access yet"
    return (
        f"The {repository.kind} {repository.name!r} is gated. Accept its terms at {repository.page}{whose}, "
        "set HF_TOKEN to a token of that account (or run 'hf auth login'), then run the same command again."
    )


def unreachable(repository: Repository, error: BaseException) -> Unreachable:
    said = f"The Hugging Face hub could not be reached for {repository.name!r}"
    hub = library()
    if _is_offline(error):
        return Unreachable(
            f"{said}: HF_HUB_OFFLINE is set, and what is needed is not in the cache ({hub.constants.HF_HUB_CACHE}). "
            "Unset HF_HUB_OFFLINE, or name local files; 'python-stdlib' needs no network."
        )
    if "timeout" in type(error).__name__.lower():
        limit = hub.constants.HF_HUB_DOWNLOAD_TIMEOUT
        why = f"{endpoint()} gave no answer for {limit} s, {len(WAITS) + 1} times over"
        return Unreachable(f"{said}: {why}. Run the same command again later; HF_HUB_DOWNLOAD_TIMEOUT=60 waits longer.")
    return Unreachable(
        f"{said} at {endpoint()} ({reason_of(error)}). Check the network and HF_ENDPOINT, then run the same command "
        "again, or name local files; 'python-stdlib' needs no network."
    )


def reason_of(error: BaseException) -> str:
    """An error's first words, without the signatures that addresses carry."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return re.sub(r"\?[^\s']+", "", lines[0]).rstrip(".") if lines else type(error).__name__
