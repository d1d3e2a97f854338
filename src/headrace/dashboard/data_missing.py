"""NotFound: what a page asks for and is not there."""

from __future__ import annotations

from headrace.errors import UsageError


class NotFound(UsageError):
    """Answered with status 404 where other mistakes are answered with 400."""
